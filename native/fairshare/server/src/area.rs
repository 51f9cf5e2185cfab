//! The bytes that come with a request and go back with its reply: a slot of shared memory, or a frame.

use wire::Request;

use crate::errno::{Errno, Result};

/// Memory of `capacity` bytes of which a request filled `payload`. It may be shared with the client,
/// so it is only ever copied from and to, or handed to system calls, and nothing is read twice.
pub struct Area {
    memory: *mut u8,
    capacity: usize,
    payload: usize,
}

impl Area {
    /// # Safety
    /// `memory` must stay valid for `capacity` bytes as long as the area lives.
    pub unsafe fn new(memory: *mut u8, capacity: usize, payload: usize) -> Self {
        Self {
            memory,
            capacity,
            payload: payload.min(capacity),
        }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn memory(&self) -> *mut u8 {
        self.memory
    }

    /// Both paths of a request.
    pub fn paths(&self, request: &Request) -> Result<(Vec<u8>, Vec<u8>)> {
        let first = self.copy(0, request.path_len as usize)?;
        let second = self.copy(request.path_len as usize, request.path2_len as usize)?;
        if first.contains(&0) || second.contains(&0) {
            return Err(Errno(libc::EINVAL));
        }
        Ok((first, second))
    }

    /// `length` bytes of the payload from `at`, as they are now. EBADMSG where there are fewer.
    pub fn copy(&self, at: usize, length: usize) -> Result<Vec<u8>> {
        if at.checked_add(length).is_none_or(|end| end > self.payload) {
            return Err(Errno(libc::EBADMSG));
        }
        let mut bytes = vec![0; length];
        // SAFETY: inside the area, as just checked.
        unsafe {
            std::ptr::copy_nonoverlapping(self.memory.add(at), bytes.as_mut_ptr(), length);
        }
        Ok(bytes)
    }

    /// Where `length` bytes of payload lie behind the paths. EBADMSG where there are fewer.
    pub fn payload(&self, request: &Request, length: usize) -> Result<*mut u8> {
        let start = request.paths_len();
        if start.checked_add(length).is_none_or(|end| end > self.payload) {
            return Err(Errno(libc::EBADMSG));
        }
        // SAFETY: inside the area.
        Ok(unsafe { self.memory.add(start) })
    }

    /// Put the reply's data there, and return its length. ERANGE where it does not fit.
    pub fn fill(&self, bytes: &[u8]) -> Result<usize> {
        if bytes.len() > self.capacity {
            return Err(Errno(libc::ERANGE));
        }
        // SAFETY: inside the area, from memory of our own.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory, bytes.len());
        }
        Ok(bytes.len())
    }
}
