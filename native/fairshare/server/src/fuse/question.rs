//! A request that stands for one of the kernel's questions.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use wire::{Op, Request};

/// One request that is being put together.
pub struct Question {
    pub request: Request,
    pub payload: Vec<u8>,
}

impl Question {
    pub fn new(op: Op, handle: u64) -> Self {
        let mut request = Request::new(op);
        request.handle = handle;
        Self {
            request,
            payload: Vec::new(),
        }
    }

    pub fn path(mut self, name: &OsStr) -> Self {
        self.request.path_len = name.len() as u32;
        self.payload.extend_from_slice(name.as_bytes());
        self
    }

    pub fn second(mut self, handle: u64, name: &[u8]) -> Self {
        self.request.handle2 = handle;
        self.request.path2_len = name.len() as u32;
        self.payload.extend_from_slice(name);
        self
    }

    pub fn data(mut self, data: &[u8]) -> Self {
        self.request.size = data.len() as u64;
        self.payload.extend_from_slice(data);
        self
    }
}

/// The root is named by its path, other nodes by their handles.
pub fn rooted(mut question: Question) -> Question {
    if question.request.handle == wire::ROOT && question.request.path_len == 0 {
        question.payload.splice(0..0, *b"/");
        question.request.path_len = 1;
    }
    question
}

pub fn xattr(op: Op, handle: u64, name: &OsStr) -> Question {
    rooted(Question::new(op, handle)).second(0, name.as_bytes())
}
