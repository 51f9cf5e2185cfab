//! What is known about a file, and changing it.

use std::mem;
use std::os::fd::AsRawFd;

use wire::{mask, Attributes, Statfs};

use crate::call::{Call, Target};
use crate::errno::{check, Errno, Result};
use crate::outcome::Outcome;
use crate::tree::{proc_path, stat_of};

/// Attributes for the wire.
pub fn attributes_of(stat: &libc::stat) -> Attributes {
    Attributes {
        ino: stat.st_ino,
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        nlink: stat.st_nlink,
        mode: stat.st_mode,
        uid: stat.st_uid,
        gid: stat.st_gid,
        blksize: stat.st_blksize as u32,
        rdev: stat.st_rdev,
        times: [
            stat.st_atime,
            stat.st_atime_nsec,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec,
        ],
    }
}

pub fn get(call: &Call<'_>) -> Result<Outcome> {
    let target = call.target()?;
    let attributes = attributes_of(&stat_of(target.fd())?);
    call.tell(&attributes.to_bytes())
}

/// chmod, chown, utimensat: the parts that `mask` names.
pub fn set(call: &Call<'_>) -> Result<Outcome> {
    let request = call.request;
    let target = call.target()?;
    let path = proc_path(target.fd());
    let stat = stat_of(target.fd())?;
    let is_link = stat.st_mode & libc::S_IFMT == libc::S_IFLNK;
    if request.mask & mask::MODE != 0 {
        if is_link {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        // SAFETY: a C string.
        let change = || check(unsafe { libc::chmod(path.as_ptr(), request.mode & 0o7777) });
        if request.mode & (libc::S_ISUID | libc::S_ISGID) != 0 && stat.st_mode & libc::S_IFMT == libc::S_IFREG
        {
            // From now on a write has to take these bits away, which is the kernel's affair.
            call.server
                .inodes
                .get((stat.st_dev, stat.st_ino))
                .reshape(change)?;
        } else {
            change()?;
        }
    }
    if request.mask & (mask::UID | mask::GID) != 0 {
        let uid = if request.mask & mask::UID != 0 {
            request.uid
        } else {
            u32::MAX
        };
        let gid = if request.mask & mask::GID != 0 {
            request.gid
        } else {
            u32::MAX
        };
        // SAFETY: C strings.
        check(unsafe { libc::fchownat(target.fd(), c"".as_ptr(), uid, gid, libc::AT_EMPTY_PATH) })?;
    }
    if request.mask & (mask::ATIME | mask::MTIME) != 0 {
        let time = |bit, second: usize| {
            if request.mask & bit == 0 {
                return libc::timespec {
                    tv_sec: 0,
                    tv_nsec: libc::UTIME_OMIT,
                };
            }
            libc::timespec {
                tv_sec: request.times[second],
                tv_nsec: request.times[second + 1],
            }
        };
        let times = [time(mask::ATIME, 0), time(mask::MTIME, 2)];
        // A link itself has no path through /proc; an open or followed file has.
        let (from, name, flags) = if is_link {
            (target.fd(), c"".as_ptr(), libc::AT_EMPTY_PATH)
        } else {
            (libc::AT_FDCWD, path.as_ptr(), 0)
        };
        // SAFETY: a C string and two timespecs.
        check(unsafe { libc::utimensat(from, name, times.as_ptr(), flags) })?;
        call.server.inodes.times_change((stat.st_dev, stat.st_ino));
    }
    Ok(Outcome::default())
}

pub fn access(call: &Call<'_>) -> Result<Outcome> {
    let target = call.target()?;
    // The worker's file system identity is the client's effective one; AT_EACCESS keeps it.
    // SAFETY: C string.
    let result = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            target.fd(),
            c"".as_ptr(),
            call.request.mode,
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    };
    check(result as libc::c_int)?;
    Ok(Outcome::default())
}

pub fn statfs(call: &Call<'_>) -> Result<Outcome> {
    let fd = call.server.tree.root();
    // SAFETY: plain data; valid descriptor.
    let found = unsafe {
        let mut found: libc::statvfs = mem::zeroed();
        let root = crate::tree::proc_path(fd);
        check(libc::statvfs(root.as_ptr(), &mut found))?;
        found
    };
    let statfs = Statfs {
        bsize: found.f_frsize,
        blocks: found.f_blocks,
        bfree: found.f_bfree,
        bavail: found.f_bavail,
        files: found.f_files,
        ffree: found.f_ffree,
        namelen: found.f_namemax,
        reserved: 0,
    };
    call.tell(&statfs.to_bytes())
}

/// For other groups of operations: /proc/self/fd/N of a target.
pub fn path_to(target: &Target) -> std::ffi::CString {
    proc_path(match target {
        Target::Open(handle) => handle.fd(),
        Target::Named(fd) => fd.as_raw_fd(),
    })
}
