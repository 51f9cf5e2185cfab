//! Errors are numbers of errno.h: what a system call said, and what the client's call will say.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// What the last system call of this thread left.
    pub fn last() -> Self {
        Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

pub type Result<T> = std::result::Result<T, Errno>;

/// A system call's result, or its errno where it is below zero.
pub fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 {
        Err(Errno::last())
    } else {
        Ok(result)
    }
}

pub fn check_size(result: libc::ssize_t) -> Result<usize> {
    if result < 0 {
        Err(Errno::last())
    } else {
        Ok(result as usize)
    }
}

/// Of no system call: what is asked for takes long, and is to be carried out apart from the workers.
pub const APART: i32 = i32::MAX;
