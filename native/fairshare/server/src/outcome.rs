//! What a request came to: from who carried it out to who asked.

use std::os::fd::RawFd;

use wire::Reply;

use crate::connection::Passed;

/// Gets the outcome, and the bytes of the reply's data.
pub type Then = Box<dyn FnOnce(&Outcome, &[u8]) + Send>;

/// Metadata that a request changed, by the files' inode numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Attributes(u64),
    /// What a name in a folder stands for.
    Entry {
        folder: u64,
        name: Vec<u8>,
    },
}

/// What an operation came to. `data` bytes of the area are the reply's data.
#[derive(Default)]
pub struct Outcome {
    pub result: i64,
    pub value: u64,
    pub data: usize,
    /// For the client: its end of a new handle.
    pub descriptor: Option<Passed>,
    /// For the server: the end to watch, and the handle that goes with it.
    pub watch: Option<(RawFd, u64)>,
    /// The number of the file whose data were changed.
    pub changed: Option<u64>,
    /// Metadata that a mount's kernel may have and has to forget.
    pub metadata: Vec<Change>,
    /// Whether a worker waited for a device.
    pub waited: bool,
}

impl Outcome {
    pub fn of(result: i64) -> Self {
        Self {
            result,
            ..Self::default()
        }
    }

    pub fn changing(mut self, ino: u64) -> Self {
        self.changed = Some(ino);
        self
    }

    pub fn changing_metadata(changes: Vec<Change>) -> Self {
        Self {
            metadata: changes,
            ..Self::default()
        }
    }

    pub fn with_data(data: usize) -> Self {
        Self {
            result: data as i64,
            data,
            ..Self::default()
        }
    }

    pub fn reply(&self) -> Reply {
        Reply {
            result: self.result,
            value: self.value,
            data_len: self.data as u32,
        }
    }
}
