//! What comes back in the data of a reply: attributes of a file, of a file system, directory entries.

use crate::record::record;

pub const ATTRIBUTES_BYTES: usize = 104;
pub const STATFS_BYTES: usize = 64;
/// Of an entry before its name.
pub const ENTRY_BYTES: usize = 20;

record! {
    /// Attributes of a file, as statx knows them. Sizes in bytes, `blocks` in units of 512 bytes.
    #[derive(Default)]
    Attributes, ATTRIBUTES_BYTES;
    ino: u64,
    size: u64,
    blocks: u64,
    nlink: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    blksize: u32,
    rdev: u64,
    /// Seconds and nanoseconds of access, modification and change.
    times: [i64; 6],
}

record! {
    /// Space of the backing file system. Blocks of `bsize` bytes.
    #[derive(Default)]
    Statfs, STATFS_BYTES;
    bsize: u64,
    blocks: u64,
    bfree: u64,
    bavail: u64,
    files: u64,
    ffree: u64,
    namelen: u64,
    reserved: u64,
}

pub const HELD_LOCK_BYTES: usize = 24;

record! {
    /// A lock that is in the way of another: its first and last byte, and the process that has it.
    #[derive(Default)]
    HeldLock, HELD_LOCK_BYTES;
    start: u64,
    end: u64,
    pid: u32,
}

impl HeldLock {
    /// Read what `to_bytes` wrote; zeros where bytes are missing.
    pub fn parse(bytes: &[u8]) -> Self {
        Self::take(&whole(bytes))
    }
}

/// The first `N` of these bytes; zeros where some are missing.
fn whole<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut whole = [0; N];
    let length = bytes.len().min(N);
    whole[..length].copy_from_slice(&bytes[..length]);
    whole
}

impl Attributes {
    /// Read what `to_bytes` wrote; zeros where bytes are missing.
    pub fn parse(bytes: &[u8]) -> Self {
        Self::take(&whole(bytes))
    }
}

impl Statfs {
    /// Read what `to_bytes` wrote; zeros where bytes are missing.
    pub fn parse(bytes: &[u8]) -> Self {
        Self::take(&whole(bytes))
    }
}

record! {
    /// An entry of a directory but for its name, which follows, with zeros up to a multiple of 8.
    EntryHead, ENTRY_BYTES;
    ino: u64,
    /// Where the next entry begins.
    cursor: u64,
    kind: u8,
    zero: u8,
    name_len: u16,
}

/// One entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    pub ino: u64,
    pub cursor: u64,
    pub kind: u8,
    pub name: &'a [u8],
}

/// The entries that `push_entry` wrote, up to the first that is not whole.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let head = EntryHead::take(rest.first_chunk()?);
        let end = ENTRY_BYTES + usize::from(head.name_len);
        let name = rest.get(ENTRY_BYTES..end)?;
        at += end.div_ceil(8) * 8;
        Some(Entry {
            ino: head.ino,
            cursor: head.cursor,
            kind: head.kind,
            name,
        })
    })
}

/// Append an entry. Returns whether it fitted in `limit` bytes.
pub fn push_entry(out: &mut Vec<u8>, limit: usize, ino: u64, cursor: u64, kind: u8, name: &[u8]) -> bool {
    let end = out.len() + (ENTRY_BYTES + name.len()).div_ceil(8) * 8;
    let Ok(name_len) = u16::try_from(name.len()) else {
        return false;
    };
    if end > limit {
        return false;
    }
    let head = EntryHead {
        ino,
        cursor,
        kind,
        zero: 0,
        name_len,
    };
    out.extend_from_slice(&head.to_bytes());
    out.extend_from_slice(name);
    out.resize(end, 0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_padded_and_bounded() {
        let mut out = Vec::new();
        assert!(push_entry(&mut out, 64, 1, 2, 8, b"name")); // 20 + 4 = 24, a multiple of 8
        assert_eq!(out.len(), 24);
        assert!(push_entry(&mut out, 64, 1, 2, 8, b"longer")); // 20 + 6 = 26 -> 32
        assert_eq!(out.len(), 56);
        assert!(!push_entry(&mut out, 64, 1, 2, 8, b"x"), "would end at 80");
        assert_eq!(out.len(), 56);
        let names: Vec<_> = entries(&out).map(|entry| entry.name.to_vec()).collect();
        assert_eq!(names, [b"name".to_vec(), b"longer".to_vec()]);
        assert_eq!(entries(&out[..out.len() - 8]).count(), 1, "the second one is cut");
    }

    #[test]
    fn attributes_survive_the_wire() {
        let attributes = Attributes {
            ino: 1,
            mode: 0o100644,
            times: [1, 2, 3, 4, 5, -6],
            ..Default::default()
        };
        assert_eq!(Attributes::parse(&attributes.to_bytes()), attributes);
        let statfs = Statfs {
            bsize: 4096,
            bavail: 7,
            ..Default::default()
        };
        assert_eq!(Statfs::parse(&statfs.to_bytes()), statfs);
    }
}
