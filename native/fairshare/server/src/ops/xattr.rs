//! Extended attributes, those of users alone.

use std::ffi::CString;

use crate::call::Call;
use crate::errno::{check, check_size, Errno, Result};
use crate::ops::attributes::path_to;
use crate::outcome::Outcome;
use crate::tree::c_string;

const LARGEST: usize = 65536;

/// Names outside "user." belong to the backing file system and its security.
fn name(call: &Call<'_>) -> Result<CString> {
    let name = call.second()?;
    if !name.starts_with(b"user.") {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    c_string(&name)
}

pub fn get(call: &Call<'_>) -> Result<Outcome> {
    let target = call.target()?; // held open while the path through it is used
    let (name, path) = (name(call)?, path_to(&target));
    let mut value = vec![0_u8; LARGEST];
    // SAFETY: C strings; the buffer has the length given.
    let length = check_size(unsafe {
        libc::getxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    })?;
    answer(call, &value[..length])
}

pub fn set(call: &Call<'_>) -> Result<Outcome> {
    let target = call.target()?; // held open while the path through it is used
    let (name, path) = (name(call)?, path_to(&target));
    let size = call.request.size as usize;
    if size > LARGEST {
        return Err(Errno(libc::E2BIG));
    }
    let value = call.area.copy(call.request.paths_len(), size)?;
    let flags = call.request.mode as i32;
    // SAFETY: C strings; the buffer has the length given.
    check(unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            flags,
        )
    })?;
    Ok(Outcome::default())
}

pub fn list(call: &Call<'_>) -> Result<Outcome> {
    let target = call.target()?;
    let path = path_to(&target);
    let mut names = vec![0_u8; LARGEST];
    // SAFETY: a C string; the buffer has the length given.
    let length =
        check_size(unsafe { libc::listxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) })?;
    let shown: Vec<u8> = names[..length]
        .split_inclusive(|&byte| byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .flatten()
        .copied()
        .collect();
    answer(call, &shown)
}

pub fn remove(call: &Call<'_>) -> Result<Outcome> {
    let target = call.target()?; // held open while the path through it is used
    let (name, path) = (name(call)?, path_to(&target));
    // SAFETY: C strings.
    check(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) })?;
    Ok(Outcome::default())
}

/// The value, or with a size of 0 only its length, as the system calls have it.
fn answer(call: &Call<'_>, value: &[u8]) -> Result<Outcome> {
    let room = call.request.size as usize;
    if room == 0 {
        return Ok(Outcome::of(value.len() as i64));
    }
    if value.len() > room {
        return Err(Errno(libc::ERANGE));
    }
    call.give(value)
}
