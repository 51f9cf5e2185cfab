//! Open and close: handles come and go.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::call::Call;
use crate::connection::Passed;
use crate::errno::{Errno, Result};
use crate::handles::{Opened, FOR_A_HANDLE, KERNEL};
use crate::ops::attributes::attributes_of;
use crate::ops::data;
use crate::outcome::{Change, Outcome};
use crate::tree::Route;
use crate::tree::{ino_of, stat_of};

/// open's flags that mean something to the backing file; O_DIRECT and the like do not, across two copies.
const PASSED: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_SYNC
    | libc::O_DSYNC
    | libc::O_NOATIME;

pub fn open(call: &Call<'_>) -> Result<Outcome> {
    let asked = call.request.flags as i32;
    if asked & libc::O_TMPFILE == libc::O_TMPFILE {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let held = call.take_descriptors(if call.session.local { FOR_A_HANDLE } else { 1 })?;
    let by_handle = call.request.path_len == 0;
    let path = if by_handle {
        Route {
            from: None,
            path: Vec::new(),
        }
    } else {
        call.path()?
    };
    let tree = &call.server.tree;
    let mut metadata = Vec::new();
    let (file, truncate) = if by_handle {
        let kept = libc::O_ACCMODE | libc::O_PATH | libc::O_DIRECTORY | libc::O_SYNC;
        (call.reopen(asked & kept)?, asked & libc::O_TRUNC != 0)
    } else if asked & libc::O_PATH != 0 {
        let kept = libc::O_PATH | asked & (libc::O_DIRECTORY | libc::O_NOFOLLOW);
        (tree.resolve(&path, kept, 0)?, false)
    } else {
        if asked & libc::O_CREAT != 0 && call.is_watched() {
            let folder = tree.spot(&path).map(|spot| ino_of(spot.parent.as_raw_fd()));
            metadata.extend(folder.ok().map(Change::Attributes));
        }
        // Without O_NONBLOCK a FIFO would stop the worker; O_TRUNC comes below, under the inode's lock.
        let flags = asked & PASSED | libc::O_NONBLOCK | libc::O_NOCTTY;
        let truncate = asked & libc::O_TRUNC != 0;
        (tree.resolve(&path, flags, call.request.mode)?, truncate)
    };
    let mut stat = stat_of(file.as_raw_fd())?;
    let kind = stat.st_mode & libc::S_IFMT;
    if asked & libc::O_PATH == 0 && kind != libc::S_IFREG && kind != libc::S_IFDIR {
        return Err(Errno(libc::EOPNOTSUPP)); // FIFOs, sockets, devices: only as names
    }
    let id_of_file = (stat.st_dev, stat.st_ino);
    let inode = call.server.inodes.get(id_of_file);
    if truncate && kind == libc::S_IFREG {
        // Opened anew where it is not open for writing, so that the kernel checks that right too.
        let again: Option<OwnedFd> = match asked & libc::O_ACCMODE {
            libc::O_RDONLY if by_handle => Some(call.reopen(libc::O_WRONLY)?),
            libc::O_RDONLY => Some(tree.resolve(&path, libc::O_WRONLY | libc::O_NONBLOCK, 0)?),
            _ => None,
        };
        let fd = again.as_ref().unwrap_or(&file).as_raw_fd();
        data::cut(call, &inode, fd, 0)?;
        stat = stat_of(file.as_raw_fd())?;
    }
    let data = call
        .area
        .fill(&attributes_of(call, &stat, file.as_raw_fd()).to_bytes())?;
    let kept = libc::O_ACCMODE | libc::O_APPEND | libc::O_SYNC | libc::O_PATH | libc::O_DIRECTORY;
    let opened = Opened {
        file,
        flags: asked & kept,
        uid: if call.session.inside {
            KERNEL
        } else {
            call.session.creds.uid
        },
        directory: kind == libc::S_IFDIR,
        id_of_file,
        inode,
        entry: Arc::clone(&call.session.entry),
        held,
    };
    let mut outcome = Outcome {
        data,
        changed: truncate.then_some(id_of_file.1),
        metadata,
        ..Outcome::default()
    };
    if call.session.local {
        let on_its_way = call.take_descriptors(1)?;
        let (handle, theirs, watched) = call.server.handles.add_local(opened, call.server.id)?;
        outcome.value = handle.id;
        outcome.descriptor = Some(Passed::new(theirs, on_its_way));
        outcome.watch = Some((watched, handle.id));
    } else {
        outcome.value = call.server.handles.add_remote(opened, call.session.id)?.id;
    }
    Ok(outcome)
}

/// A hint of the last holder, so that what the handle held is free when close returns.
pub fn close(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    // All of a range at once: that leaves no pieces, and cannot fail.
    let _ = call
        .server
        .records
        .unset(handle.id_of_file, call.session.id, 0, u64::MAX);
    call.server
        .handles
        .release(&handle, call.session.id, call.request.mode == 0);
    Ok(Outcome::default())
}

pub fn describe(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    call.server.handles.claim(&handle, call.session.id);
    let attributes = attributes_of(call, &stat_of(handle.fd())?, handle.fd());
    Ok(Outcome {
        value: handle.flags() as u32 as u64,
        ..call.tell(&attributes.to_bytes())?
    })
}

pub fn set_flags(call: &Call<'_>) -> Result<Outcome> {
    call.handle()?.set_flags(call.request.flags as i32);
    Ok(Outcome::default())
}
