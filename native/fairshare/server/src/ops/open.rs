//! Open and close: handles come and go.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::call::Call;
use crate::errno::{Errno, Result};
use crate::handles::Opened;
use crate::ops::attributes::attributes_of;
use crate::ops::data;
use crate::outcome::Outcome;
use crate::tree::stat_of;
use crate::tree::Route;

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
    let held = call.take_descriptors(1)?;
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
    let (file, truncate) = if by_handle {
        let kept = libc::O_ACCMODE | libc::O_PATH | libc::O_DIRECTORY | libc::O_SYNC;
        (call.reopen(asked & kept)?, asked & libc::O_TRUNC != 0)
    } else if asked & libc::O_PATH != 0 {
        let kept = libc::O_PATH | asked & (libc::O_DIRECTORY | libc::O_NOFOLLOW);
        (tree.resolve(&path, kept, 0)?, false)
    } else {
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
    let data = call.area.fill(&attributes_of(&stat).to_bytes())?;
    let kept = libc::O_ACCMODE | libc::O_APPEND | libc::O_SYNC | libc::O_PATH | libc::O_DIRECTORY;
    let opened = Opened {
        file,
        flags: asked & kept,
        uid: call.session.creds.uid,
        directory: kind == libc::S_IFDIR,
        id_of_file,
        inode,
        entry: Arc::clone(&call.session.entry),
        held,
    };
    let handle = call.server.handles.add(opened, call.session)?;
    Ok(Outcome {
        value: handle.id,
        data,
        changed: truncate.then_some(id_of_file.1),
        ..Outcome::default()
    })
}

pub fn close(call: &Call<'_>) -> Result<Outcome> {
    call.handle()?;
    call.server.handles.remove(call.request.handle);
    Ok(Outcome::default())
}

/// A voucher for the process that asks about its open file. Whoever has it from another user reads and writes by the mount.
pub fn vouch(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    if handle.uid != call.session.creds.uid {
        return Err(Errno(libc::EACCES));
    }
    let (number, secret) = call.server.vouchers.make(call.session)?;
    Ok(Outcome {
        value: number,
        ..call.tell(&[handle.id.to_le_bytes(), secret.to_le_bytes()].concat())?
    })
}
