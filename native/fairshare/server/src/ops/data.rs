//! Reading and writing, and what else changes data or its length.

use std::os::fd::{AsRawFd, RawFd};

use crate::area::Area;
use crate::call::Call;
use crate::errno::{check, check_size, Errno, Result};
use crate::handles::Handle;
use crate::mapping::{How, Inode};
use crate::outcome::Outcome;
use crate::tree::{allocated, stat_of};
use crate::writes::Writes;

pub fn read(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    if handle.directory {
        return Err(Errno(libc::EISDIR));
    }
    if !handle.readable() || handle.flags & libc::O_PATH != 0 {
        return Err(Errno(libc::EBADF));
    }
    if let Some(mount) = call.session.cache {
        call.server.caches.note(handle.id_of_file.1, mount); // before it is read: what is changed then is told
    }
    let wanted = (call.request.size as usize).min(call.area.capacity());
    let away = call.request.flags & wire::flags::AWAY != 0;
    let count = read_at(&handle, call.request.offset, call.area, wanted, away)?;
    call.session.entry.counters.moved(count as u64, 0);
    Ok(Outcome::with_data(count))
}

fn read_at(handle: &Handle, offset: i64, to: &Area, wanted: usize, away: bool) -> Result<usize> {
    let start = u64::try_from(offset).map_err(|_| Errno(libc::EINVAL))?;
    let to = to.memory();
    if let Some(copied) = handle.inode.read(start, to, wanted as u64, away) {
        return Ok(copied as usize);
    }
    // SAFETY: the caller's area holds `wanted` bytes.
    let count = check_size(unsafe { libc::pread(handle.fd(), to.cast(), wanted, offset) })?;
    handle
        .inode
        .was_read(handle.fd(), handle.uid, start, count as u64);
    Ok(count)
}

pub fn write(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    if !handle.writable() || handle.flags & libc::O_PATH != 0 {
        return Err(Errno(libc::EBADF));
    }
    let (size, flags) = (call.request.size as usize, call.request.flags);
    let from = call.area.payload(call.request, size)?;
    if let Some(mount) = call.session.cache {
        call.server.caches.note(handle.id_of_file.1, mount);
    }
    let (start, count) = if flags & wire::flags::APPEND != 0 {
        let _guard = handle.inode.appending();
        let count = append_to(handle.fd(), from, size)?;
        (end_of(handle.fd())? - count as i64, count)
    } else {
        let behind = (flags & wire::flags::CHAINED != 0).then_some(&call.session.writes);
        let how = (behind, flags & wire::flags::AWAY != 0);
        (
            call.request.offset,
            write_part(&handle, call.request.offset, from, size, how)?,
        )
    };
    call.session.entry.counters.moved(0, count as u64);
    Ok(Outcome {
        elsewhere: start != call.request.offset,
        waited: handle.flags & libc::O_DSYNC != 0,
        ..Outcome::of(count as i64).changing(handle.id_of_file.1)
    })
}

/// Write at `offset`. `behind`: a later piece of one write, of which nothing may be written (0) before the
/// pieces in front of it are there, and whose first piece has set the modification time, as a kernel's
/// write does before it copies. Where one in front failed (a full store), it must not leave a hole and data behind it.
fn write_part(
    handle: &Handle,
    offset: i64,
    from: *mut u8,
    size: usize,
    (behind, away): (Option<&Writes>, bool),
) -> Result<usize> {
    let start = u64::try_from(offset).map_err(|_| Errno(libc::EINVAL))?;
    let synchronous = handle.flags & libc::O_DSYNC != 0;
    if !synchronous {
        let how = How {
            stamp: behind.is_none(),
            away,
        };
        // What is mapped lies inside the file, so that there is nothing to wait for.
        let copied = handle.inode.write(handle.fd(), start, from, size as u64, how);
        if let Some(copied) = copied {
            return Ok(copied as usize);
        }
    }
    if let Some(writes) = behind {
        let length = || Ok(stat_of(handle.fd())?.st_size);
        if !writes.wait(handle.id_of_file, offset, length)? {
            return Ok(0);
        }
    }
    // SAFETY: the caller's area holds `size` bytes.
    let count = check_size(unsafe { libc::pwrite(handle.fd(), from.cast(), size, offset) })?;
    handle.inode.wrote(handle.fd(), handle.uid, start, count as u64);
    Ok(count)
}

/// The kernel finds the end and writes there in one step.
fn append_to(fd: RawFd, from: *mut u8, size: usize) -> Result<usize> {
    let part = libc::iovec {
        iov_base: from.cast(),
        iov_len: size,
    };
    // SAFETY: the area holds `size` bytes.
    check_size(unsafe { libc::pwritev2(fd, &part, 1, 0, libc::RWF_APPEND) })
}

fn end_of(fd: RawFd) -> Result<i64> {
    // SAFETY: a plain call; the position of a backing descriptor is used for nothing else.
    match unsafe { libc::lseek(fd, 0, libc::SEEK_END) } {
        end if end < 0 => Err(Errno::last()),
        end => Ok(end),
    }
}

/// Where data or a hole begins. Other positions are the client's own affair.
pub fn seek(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    let whence = call.request.mode as i32;
    if whence != libc::SEEK_DATA && whence != libc::SEEK_HOLE {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: a plain call.
    match unsafe { libc::lseek(handle.fd(), call.request.offset, whence) } {
        at if at < 0 => Err(Errno::last()),
        at => Ok(Outcome::of(at)),
    }
}

pub fn truncate(call: &Call<'_>) -> Result<Outcome> {
    let size = i64::try_from(call.request.size).map_err(|_| Errno(libc::EINVAL))?;
    if call.request.path_len > 0 {
        let flags = libc::O_WRONLY | libc::O_NONBLOCK;
        let file = call.server.tree.resolve(&call.path()?, flags, 0)?;
        let stat = stat_of(file.as_raw_fd())?;
        let inode = call.server.inodes.get((stat.st_dev, stat.st_ino));
        cut(call, &inode, file.as_raw_fd(), size)?;
        return Ok(Outcome::default().changing(stat.st_ino));
    }
    let handle = call.handle()?;
    if handle.flags & libc::O_PATH != 0 {
        let file = call.reopen(libc::O_WRONLY)?;
        cut(call, &handle.inode, file.as_raw_fd(), size)?;
        return Ok(Outcome::default().changing(handle.id_of_file.1));
    }
    if !handle.writable() {
        return Err(Errno(libc::EINVAL));
    }
    cut(call, &handle.inode, handle.fd(), size)?;
    Ok(Outcome::default().changing(handle.id_of_file.1))
}

/// ftruncate, with no mapping of the file in place.
pub fn cut(call: &Call<'_>, inode: &Inode, fd: RawFd, size: i64) -> Result<()> {
    let stat = stat_of(fd)?;
    call.will_move(allocated(&stat).min((stat.st_size - size).max(0) as u64))?;
    // SAFETY: a plain call.
    change(call, inode, || check(unsafe { libc::ftruncate(fd, size) }))
}

/// Change what a file has allocated.
fn change(call: &Call<'_>, inode: &Inode, what: impl FnOnce() -> Result<i32>) -> Result<()> {
    if call.alone {
        inode.work_on(what)?;
    } else {
        inode.reshape(what)?;
    }
    Ok(())
}

pub fn allocate(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    if !handle.writable() {
        return Err(Errno(libc::EBADF));
    }
    let size = i64::try_from(call.request.size).map_err(|_| Errno(libc::EINVAL))?;
    let (mode, offset) = (call.request.mode as i32, call.request.offset);
    // Some ways move all that lies behind.
    let shifts = mode & (libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE) != 0;
    let behind = if shifts {
        allocated(&stat_of(handle.fd())?)
    } else {
        0
    };
    call.will_move(behind.max(call.request.size))?;
    // SAFETY: a plain call.
    change(call, &handle.inode, || {
        check(unsafe { libc::fallocate(handle.fd(), mode, offset, size) })
    })?;
    Ok(Outcome::default().changing(handle.id_of_file.1))
}

/// What the backing file system promises of fsync holds: data and name survive a crash.
pub fn fsync(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    // SAFETY: plain calls.
    check(unsafe {
        if call.request.flags & wire::flags::DATA_ONLY != 0 {
            libc::fdatasync(handle.fd())
        } else {
            libc::fsync(handle.fd())
        }
    })?;
    Ok(Outcome::default())
}
