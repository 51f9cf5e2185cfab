//! A request and its reply: fixed records; paths and data follow in the data area or the frame.

use crate::limits::MAX_PATH;
use crate::record::{record, Kind, Malformed, Part};

pub const REQUEST_BYTES: usize = 96;
pub const REPLY_BYTES: usize = 24;

/// The operations from one list: the type, and which number stands for which.
macro_rules! operations {
    ($($(#[$about:meta])* $name:ident = $code:literal,)*) => {
        /// What is asked for. Fields that an operation uses beside `handle` and the path are named here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(u32)]
        pub enum Op {
            $($(#[$about])* $name = $code,)*
        }

        impl Op {
            pub fn from_code(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) const ALL: &'static [(&'static str, u32)] = &[$((stringify!($name), $code),)*];
        }
    };
}

operations! {
    /// Nothing; the answer shows that the server lives.
    #[default]
    Ping = 1,
    /// JSON with jobs, shares and totals, in the data.
    Status = 2,
    /// Ticket fields in the data; the signed ticket comes back in the data.
    Ticket = 3,
    /// The options are read anew -> what changed, in words, in the data. For the administrator alone.
    Reload = 4,
    /// A job's name in the data, `size` bytes; offset: for how many seconds; uid: whose, or u32::MAX -> connections
    /// that were ended, in `value`. For the administrator alone.
    SendAway = 5,
    /// handle -> a voucher in `value`, by which a process of the same user begins a session of the same job; the handle and
    /// the voucher's secret in the data.
    Vouch = 6,
    /// offset: a process of this user's; it and what it starts belong to this session's job as long as the session lasts.
    Join = 8,
    /// A mount has dropped what the notice named whose number is the offset.
    Dropped = 7,
    /// path, flags (open's), mode -> handle; attributes in the data.
    Open = 10,
    Close = 11,
    /// offset, size -> bytes read, in the data.
    Read = 13,
    /// offset, data -> bytes written.
    Write = 14,
    /// offset, mode (SEEK_DATA or SEEK_HOLE) -> where that is. Positions are the clients' own.
    Seek = 15,
    /// size; by handle, or by path.
    Truncate = 16,
    /// offset, size, mode (fallocate's).
    Allocate = 17,
    /// flags: 1 for fdatasync.
    Fsync = 18,
    /// path or handle, flags -> attributes in the data.
    GetAttributes = 20,
    /// path or handle, mask, mode, uid, gid, times.
    SetAttributes = 21,
    /// path, mode (access's).
    Access = 22,
    Statfs = 23,
    /// offset (cursor), size -> entries in the data.
    ReadDirectory = 30,
    MakeDirectory = 31,
    /// flags: AT_REMOVEDIR.
    Unlink = 32,
    /// both paths; handle and handle2; flags (renameat2's).
    Rename = 33,
    Link = 34,
    /// path: the new link; path2: what it says.
    Symlink = 35,
    Readlink = 36,
    /// path, mode (with its kind: FIFO, socket, device or file), offset (the device's number).
    MakeNode = 38,
    /// path2: the name of the attribute; size of the buffer.
    GetXattr = 40,
    /// path2: name; the value follows in the data; flags of setxattr.
    SetXattr = 41,
    ListXattr = 42,
    RemoveXattr = 43,
    /// offset, size (0: to the end), mode (F_RDLCK...), handle2 (who owns it, by the mount's own numbers), mask (the
    /// process); flags SET: take it or give it up, else the one in the way comes back ([`crate::HeldLock`]).
    Lock = 50,
}

/// Bits of `flags` that are ours rather than the system call's.
pub mod flags {
    /// GetAttributes, SetAttributes, xattr: the link itself, not what it points to.
    pub const NO_FOLLOW: u32 = 1;
    /// Fsync: data alone.
    pub const DATA_ONLY: u32 = 1;
    /// Write: a later piece of one write, only good when the earlier ones are there.
    pub const CHAINED: u32 = 1;
    /// Read, Write: copies of large pieces go past the caches (the client finds out what is faster).
    pub const AWAY: u32 = 2;
    /// Write: at the end of the file, wherever the offset is.
    pub const APPEND: u32 = 4;
    /// Lock: set it (otherwise ask who is in the way).
    pub const SET: u32 = 1;
}

/// Bits of `mask` in SetAttributes.
pub mod mask {
    pub const MODE: u32 = 1;
    pub const UID: u32 = 2;
    pub const GID: u32 = 4;
    pub const ATIME: u32 = 8;
    pub const MTIME: u32 = 16;
}

/// In a record it is its number; a number that stands for none has been refused before.
impl Part for Op {
    const KIND: Kind = u32::KIND;

    #[inline]
    fn take(bytes: &[u8], at: &mut usize) -> Self {
        Self::from_code(u32::take(bytes, at)).unwrap_or_default()
    }

    #[inline]
    fn put(&self, out: &mut [u8], at: &mut usize) {
        (*self as u32).put(out, at);
    }
}

record! {
    #[derive(Default)]
    Request, REQUEST_BYTES;
    op: Op,
    flags: u32,
    /// An open file, or the directory that `path` starts from.
    handle: u64,
    /// The directory that `path2` starts from.
    handle2: u64,
    offset: i64,
    /// Bytes wanted or given.
    size: u64,
    path_len: u32,
    path2_len: u32,
    mode: u32,
    mask: u32,
    uid: u32,
    gid: u32,
    /// Access time (seconds, nanoseconds), then modification time; nanoseconds may be UTIME_NOW.
    times: [i64; 4],
}

impl Request {
    pub fn new(op: Op) -> Self {
        Self {
            op,
            ..Self::default()
        }
    }

    /// Read a request. What follows it must hold both paths: the caller compares with `paths_len`.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, Malformed> {
        Op::from_code(u32::take(bytes, &mut 0)).ok_or(Malformed("unknown operation"))?;
        let request = Self::take(bytes);
        if request.path_len as usize > MAX_PATH || request.path2_len as usize > MAX_PATH {
            return Err(Malformed("path longer than allowed"));
        }
        Ok(request)
    }

    pub fn paths_len(&self) -> usize {
        self.path_len as usize + self.path2_len as usize
    }
}

record! {
    /// What came of a request: result (at least 0, or -errno), an extra value, and how much data follows.
    #[derive(Default)]
    Reply, REPLY_BYTES;
    result: i64,
    value: u64,
    data_len: u32,
}

impl Reply {
    pub fn parse(bytes: &[u8; REPLY_BYTES]) -> Self {
        Self::take(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_wire() {
        let mut request = Request::new(Op::Rename);
        request.handle2 = 9;
        request.offset = -1;
        request.path_len = 5;
        request.path2_len = 7;
        request.times = [1, 2, 3, -4];
        assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
        assert_eq!(request.paths_len(), 12);
    }

    #[test]
    fn unknown_operations_and_endless_paths_are_refused() {
        let mut bytes = Request::new(Op::Open).to_bytes();
        bytes[40..44].copy_from_slice(&(MAX_PATH as u32 + 1).to_le_bytes());
        assert!(Request::parse(&bytes).is_err());
        let mut bytes = Request::new(Op::Open).to_bytes();
        bytes[0..4].copy_from_slice(&9999_u32.to_le_bytes());
        assert!(Request::parse(&bytes).is_err());
    }
}
