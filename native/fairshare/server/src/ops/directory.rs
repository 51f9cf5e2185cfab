//! Reading directories.

use wire::push_entry;

use crate::call::Call;
use crate::errno::{Errno, Result};
use crate::outcome::Outcome;

/// Bytes of the entry with the longest name, as the kernel gives it.
const LARGEST: usize = 280;

/// Entries from the cursor `offset` on; an empty answer is the end. Each entry has the cursor behind it,
/// which stays good while the directory changes, as telldir's does.
pub fn read(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    if !handle.directory {
        return Err(Errno(libc::ENOTDIR));
    }
    if handle.flags & libc::O_PATH != 0 {
        return Err(Errno(libc::EBADF));
    }
    let limit = (call.request.size as usize).min(call.area.capacity());
    let mut raw = [0_u64; 4096]; // 32 KiB, aligned; of it no more than can be passed on, as long as here as there
    let mut out = Vec::with_capacity(limit.min(64 << 10));
    // The backing descriptor's position is used: one reader of a handle at a time.
    let _guard = handle.reading.lock().expect("no panics under this lock");
    // SAFETY: plain calls with a buffer of the length given.
    let length = unsafe {
        if libc::lseek(handle.fd(), call.request.offset, libc::SEEK_SET) < 0 {
            return Err(Errno::last());
        }
        libc::syscall(
            libc::SYS_getdents64,
            handle.fd(),
            raw.as_mut_ptr(),
            std::mem::size_of_val(&raw).min(limit.max(LARGEST)),
        )
    };
    if length < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the array's own bytes.
    let bytes = unsafe { std::slice::from_raw_parts(raw.as_ptr().cast::<u8>(), length as usize) };
    let mut at = 0;
    // struct linux_dirent64: inode, cursor, length of the record (u16), type (u8), name with a NUL.
    while at + 19 <= bytes.len() {
        let word = |from: usize| u64::from_ne_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
        let record = u16::from_ne_bytes([bytes[at + 16], bytes[at + 17]]) as usize;
        let name = &bytes[at + 19..at + record];
        let name = &name[..name.iter().position(|&b| b == 0).unwrap_or(name.len())];
        if !push_entry(&mut out, limit, word(at), word(at + 8), bytes[at + 18], name) {
            break;
        }
        at += record;
    }
    if out.is_empty() && at < bytes.len() {
        return Err(Errno(libc::EINVAL)); // no room for a single entry
    }
    call.give(&out)
}
