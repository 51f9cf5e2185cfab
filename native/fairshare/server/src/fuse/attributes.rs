//! Attributes and times as the kernel has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, TimeOrNow};
use wire::Attributes;

use crate::fuse::nodes::ROOT_NODE;

pub fn stamp(time: TimeOrNow) -> (i64, i64) {
    match time {
        TimeOrNow::Now => (0, libc::UTIME_NOW),
        TimeOrNow::SpecificTime(at) => match at.duration_since(UNIX_EPOCH) {
            Ok(since) => (since.as_secs() as i64, i64::from(since.subsec_nanos())),
            Err(before) => {
                let ago = before.duration();
                match ago.subsec_nanos() {
                    0 => (-(ago.as_secs() as i64), 0),
                    nanos => (-(ago.as_secs() as i64) - 1, 1_000_000_000 - i64::from(nanos)),
                }
            }
        },
    }
}

pub fn time(seconds: i64, nanos: i64) -> SystemTime {
    let part = Duration::from_nanos(nanos.max(0) as u64);
    if seconds >= 0 {
        UNIX_EPOCH + Duration::from_secs(seconds as u64) + part
    } else {
        UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + part
    }
}

pub fn kind_of(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFBLK => FileType::BlockDevice,
        libc::S_IFCHR => FileType::CharDevice,
        _ => FileType::RegularFile,
    }
}

/// A device's number, as the kernel packs it into 32 bits for FUSE, for mknod; and back.
pub fn device_of(packed: u32) -> u64 {
    libc::makedev(
        (packed >> 8) & 0xfff,
        (packed & 0xff) | ((packed >> 12) & 0xfff00),
    )
}

fn packed(device: u64) -> u32 {
    let (major, minor) = (libc::major(device), libc::minor(device));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

pub fn for_kernel(a: &Attributes) -> FileAttr {
    FileAttr {
        ino: a.ino,
        size: a.size,
        blocks: a.blocks,
        atime: time(a.times[0], a.times[1]),
        mtime: time(a.times[2], a.times[3]),
        ctime: time(a.times[4], a.times[5]),
        crtime: UNIX_EPOCH,
        kind: kind_of(a.mode),
        perm: (a.mode & 0o7777) as u16,
        nlink: a.nlink as u32,
        uid: a.uid,
        gid: a.gid,
        rdev: packed(a.rdev),
        blksize: a.blksize,
        flags: 0,
    }
}

/// The same, under the number that the kernel knows (the root's is always 1).
pub fn numbered(a: &Attributes, ino: u64) -> FileAttr {
    FileAttr {
        ino: if ino == ROOT_NODE { ROOT_NODE } else { a.ino },
        ..for_kernel(a)
    }
}
