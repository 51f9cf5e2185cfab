//! A request and its reply: fixed records; paths and data follow in the data area or the frame.

use crate::limits::MAX_PATH;
use crate::reader::{i64_at, u32_at, u64_at, Malformed};

pub const REQUEST_BYTES: usize = 96;
pub const REPLY_BYTES: usize = 24;

/// The operations from one list: the type, and which number stands for which.
macro_rules! operations {
    ($($(#[$about:meta])* $name:ident = $code:literal,)*) => {
        /// What is asked for. Fields that an operation uses beside `handle` and the path are named here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        }
    };
}

operations! {
    /// Nothing; the answer shows that the server lives.
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
    /// path, flags (open's), mode -> handle; attributes and, where the file is striped, a grant in the data.
    /// With O_CREAT the servers that a new file may be striped over (u64 each) in the data, `size` bytes.
    Open = 10,
    Close = 11,
    /// Flags of an inherited handle in `value`; attributes in the data.
    Describe = 12,
    /// offset (-1: at the handle's position), size -> bytes read, in the data.
    Read = 13,
    /// offset (-1: at the handle's position or, with O_APPEND, the end), data -> bytes written.
    Write = 14,
    /// offset, mode (whence) -> the new position.
    Seek = 15,
    /// size; by handle, or by path. A striped file that becomes shorter: 1 for "cut the objects, then ask
    /// with flags SET".
    Truncate = 16,
    /// offset, size, mode (fallocate's).
    Allocate = 17,
    /// flags: 1 for fdatasync.
    Fsync = 18,
    /// flags of fcntl(F_SETFL).
    SetFlags = 19,
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
    /// path -> the path without links, in the data.
    Resolve = 37,
    /// path, mode (with its kind: FIFO, socket, device or file), offset (the device's number).
    MakeNode = 38,
    /// path2: the name of the attribute; size of the buffer.
    GetXattr = 40,
    /// path2: name; the value follows in the data; flags of setxattr.
    SetXattr = 41,
    ListXattr = 42,
    RemoveXattr = 43,
    /// offset, size (0: to the end), mode (F_RDLCK...), flags: 1 set, 0 ask.
    Lock = 50,
    /// mode (flock's).
    Flock = 51,
    /// A grant in the data -> handle of this server's object.
    StripeOpen = 60,
    /// A grant in the data: the object goes.
    StripeRemove = 61,
    /// offset (-1: at the position, or the end with O_APPEND), size -> where it begins, in `value`. Writing:
    /// the file is as long as needed, and not cut until StripeEnd. flags READING: moves the position alone.
    StripeBegin = 62,
    /// flags SET: gives up cutting.
    StripeEnd = 63,
    /// A grant in the data: all its objects are gone. Another one of which objects are left in the data.
    StripeGone = 64,
}

/// Bits of `flags` that are ours rather than the system call's.
pub mod flags {
    /// GetAttributes, SetAttributes, xattr: the link itself, not what it points to.
    pub const NO_FOLLOW: u32 = 1;
    /// Fsync: data alone.
    pub const DATA_ONLY: u32 = 1;
    /// Write: a later piece of one write, only good when the earlier ones are there.
    pub const CHAINED: u32 = 1;
    /// Lock: set it (otherwise ask who is in the way). Truncate, StripeEnd: see there.
    pub const SET: u32 = 1;
    /// StripeBegin: to read.
    pub const READING: u32 = 1;
}

/// Bits of `mask` in SetAttributes.
pub mod mask {
    pub const MODE: u32 = 1;
    pub const UID: u32 = 2;
    pub const GID: u32 = 4;
    pub const ATIME: u32 = 8;
    pub const MTIME: u32 = 16;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    pub flags: u32,
    /// An open file, or the directory that `path` starts from.
    pub handle: u64,
    /// The directory that `path2` starts from.
    pub handle2: u64,
    pub offset: i64,
    /// Bytes wanted or given.
    pub size: u64,
    pub path_len: u32,
    pub path2_len: u32,
    pub mode: u32,
    pub mask: u32,
    pub uid: u32,
    pub gid: u32,
    /// Access time (seconds, nanoseconds), then modification time; nanoseconds may be UTIME_NOW.
    pub times: [i64; 4],
}

impl Request {
    pub fn new(op: Op) -> Self {
        Self {
            op,
            flags: 0,
            handle: 0,
            handle2: 0,
            offset: 0,
            size: 0,
            path_len: 0,
            path2_len: 0,
            mode: 0,
            mask: 0,
            uid: 0,
            gid: 0,
            times: [0; 4],
        }
    }

    /// Read a request. What follows it must hold both paths: the caller compares with `paths_len`.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, Malformed> {
        let op = Op::from_code(u32_at(bytes, 0)).ok_or(Malformed("unknown operation"))?;
        let (path_len, path2_len) = (u32_at(bytes, 40), u32_at(bytes, 44));
        if path_len as usize > MAX_PATH || path2_len as usize > MAX_PATH {
            return Err(Malformed("path longer than allowed"));
        }
        Ok(Self {
            op,
            flags: u32_at(bytes, 4),
            handle: u64_at(bytes, 8),
            handle2: u64_at(bytes, 16),
            offset: i64_at(bytes, 24),
            size: u64_at(bytes, 32),
            path_len,
            path2_len,
            mode: u32_at(bytes, 48),
            mask: u32_at(bytes, 52),
            uid: u32_at(bytes, 56),
            gid: u32_at(bytes, 60),
            times: [
                i64_at(bytes, 64),
                i64_at(bytes, 72),
                i64_at(bytes, 80),
                i64_at(bytes, 88),
            ],
        })
    }

    pub fn paths_len(&self) -> usize {
        self.path_len as usize + self.path2_len as usize
    }

    pub fn to_bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[0..4].copy_from_slice(&(self.op as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.handle.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.handle2.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.offset.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.size.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.path_len.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.path2_len.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.mode.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.mask.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.uid.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.gid.to_le_bytes());
        for (i, time) in self.times.iter().enumerate() {
            bytes[64 + 8 * i..72 + 8 * i].copy_from_slice(&time.to_le_bytes());
        }
        bytes
    }
}

/// What came of a request: result (at least 0, or -errno), an extra value, and how much data follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reply {
    pub result: i64,
    pub value: u64,
    pub data_len: u32,
}

impl Reply {
    pub fn to_bytes(self) -> [u8; REPLY_BYTES] {
        let mut bytes = [0; REPLY_BYTES];
        bytes[0..8].copy_from_slice(&self.result.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.data_len.to_le_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8; REPLY_BYTES]) -> Self {
        Self {
            result: i64_at(bytes, 0),
            value: u64_at(bytes, 8),
            data_len: u32_at(bytes, 16),
        }
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
