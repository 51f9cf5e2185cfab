//! Making, removing and changing names.

use std::os::fd::AsRawFd;

use crate::call::{Call, Target};
use crate::errno::{check, check_size, Errno, Result};
use crate::outcome::Outcome;
use crate::tree::{allocated, c_string, proc_path, Spot};

pub fn make_directory(call: &Call<'_>) -> Result<Outcome> {
    let spot = new_spot(call)?;
    // SAFETY: a C string and an open descriptor.
    check(unsafe {
        libc::mkdirat(
            spot.parent.as_raw_fd(),
            spot.name.as_ptr(),
            call.request.mode & 0o7777,
        )
    })?;
    Ok(Outcome::default())
}

/// mknod: FIFOs, sockets and devices are names here, which nobody opens through a server ([`super::open`]); through
/// the mount the kernel does. Who may make which is for the kernel to say.
pub fn make_node(call: &Call<'_>) -> Result<Outcome> {
    let spot = new_spot(call)?;
    let mode = call.request.mode & (libc::S_IFMT | 0o7777);
    // SAFETY: a C string and an open descriptor.
    check(unsafe {
        libc::mknodat(
            spot.parent.as_raw_fd(),
            spot.name.as_ptr(),
            mode,
            call.request.offset as u64,
        )
    })?;
    Ok(Outcome::default())
}

pub fn unlink(call: &Call<'_>) -> Result<Outcome> {
    let spot = call.server.tree.spot(&call.path()?)?;
    let flags = call.request.flags as i32 & libc::AT_REMOVEDIR;
    call.will_move(freed(&spot))?;
    // SAFETY: a C string and an open descriptor.
    check(unsafe { libc::unlinkat(spot.parent.as_raw_fd(), spot.name.as_ptr(), flags) })?;
    Ok(Outcome::default())
}

pub fn rename(call: &Call<'_>) -> Result<Outcome> {
    let (from, to) = call.both_paths()?;
    let (from, to) = (call.server.tree.spot(&from)?, call.server.tree.spot(&to)?);
    let flags = call.request.flags & (libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE);
    if flags != call.request.flags {
        return Err(Errno(libc::EINVAL));
    }
    let replaces = flags & libc::RENAME_EXCHANGE == 0;
    call.will_move(if replaces { freed(&to) } else { 0 })?;
    // SAFETY: C strings and open descriptors.
    let result = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            from.parent.as_raw_fd(),
            from.name.as_ptr(),
            to.parent.as_raw_fd(),
            to.name.as_ptr(),
            flags,
        )
    };
    check(result as libc::c_int)?;
    Ok(Outcome::default())
}

pub fn link(call: &Call<'_>) -> Result<Outcome> {
    let (source, to) = if call.request.path_len == 0 {
        let (_, to) = call.area.paths(call.request)?;
        (Target::Open(call.handle()?), call.from(call.request.handle2, to)?)
    } else {
        let (from, to) = call.both_paths()?;
        let follow = call.request.flags as i32 & libc::AT_SYMLINK_FOLLOW != 0;
        (Target::Named(call.server.tree.locate(&from, follow)?), to)
    };
    let to = call.server.tree.spot(&to)?;
    if to.name.as_bytes().ends_with(b"/") {
        return Err(Errno(libc::ENOENT));
    }
    let path = proc_path(source.fd());
    // Through /proc the kernel links exactly the file that was found, inside the tree.
    // SAFETY: C strings and open descriptors.
    check(unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            path.as_ptr(),
            to.parent.as_raw_fd(),
            to.name.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    })?;
    Ok(Outcome::default())
}

pub fn symlink(call: &Call<'_>) -> Result<Outcome> {
    let text = c_string(&call.second()?)?;
    let spot = call.server.tree.spot(&call.path()?)?;
    // SAFETY: C strings and an open descriptor.
    check(unsafe { libc::symlinkat(text.as_ptr(), spot.parent.as_raw_fd(), spot.name.as_ptr()) })?;
    Ok(Outcome::default())
}

pub fn readlink(call: &Call<'_>) -> Result<Outcome> {
    let link = if call.request.path_len == 0 {
        Target::Open(call.handle()?)
    } else {
        Target::Named(call.server.tree.locate(&call.path()?, false)?)
    };
    let mut text = vec![0_u8; 4096];
    // SAFETY: the buffer has the length given; an empty path means the link that the descriptor names.
    let result = unsafe { libc::readlinkat(link.fd(), c"".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
    let length = match check_size(result) {
        Err(Errno(libc::ENOENT)) => return Err(Errno(libc::EINVAL)), // not a link
        other => other?,
    };
    call.give(&text[..length])
}

/// A spot for a name that is to be made. The root is there.
fn new_spot(call: &Call<'_>) -> Result<Spot> {
    match call.server.tree.spot(&call.path()?) {
        Err(Errno(libc::EBUSY)) => Err(Errno(libc::EEXIST)),
        other => other,
    }
}

/// Bytes that are freed where a name goes: it may be the last one of a large file, or that of a folder that was large.
fn freed(spot: &Spot) -> u64 {
    // SAFETY: stat is plain data; a C string and an open descriptor.
    let stat = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let (folder, name) = (spot.parent.as_raw_fd(), spot.name.as_ptr());
        match libc::fstatat(folder, name, &mut stat, libc::AT_SYMLINK_NOFOLLOW) {
            0 => stat,
            _ => return 0, // whoever removes it will hear why
        }
    };
    if stat.st_nlink == 1 || stat.st_mode & libc::S_IFMT == libc::S_IFDIR {
        allocated(&stat)
    } else {
        0
    }
}
