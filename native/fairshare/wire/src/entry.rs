//! What comes back in the data of a reply: attributes of a file, of a file system, directory entries.

use crate::reader::{i64_at, u32_at, u64_at};

pub const ATTRIBUTES_BYTES: usize = 120;
pub const STATFS_BYTES: usize = 64;

/// Attributes of a file, as statx knows them. Sizes in bytes, `blocks` in units of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    pub ino: u64,
    pub size: u64,
    pub blocks: u64,
    pub nlink: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub blksize: u32,
    pub rdev: u64,
    /// Seconds and nanoseconds of access, modification, change and birth.
    pub times: [i64; 8],
}

impl Attributes {
    pub fn to_bytes(&self) -> [u8; ATTRIBUTES_BYTES] {
        let mut bytes = [0; ATTRIBUTES_BYTES];
        for (i, word) in [self.ino, self.size, self.blocks, self.nlink].iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (i, word) in [self.mode, self.uid, self.gid, self.blksize].iter().enumerate() {
            bytes[32 + 4 * i..36 + 4 * i].copy_from_slice(&word.to_le_bytes());
        }
        bytes[48..56].copy_from_slice(&self.rdev.to_le_bytes());
        for (i, time) in self.times.iter().enumerate() {
            bytes[56 + 8 * i..64 + 8 * i].copy_from_slice(&time.to_le_bytes());
        }
        bytes
    }
}

impl Attributes {
    /// Read what `to_bytes` wrote; zeros where bytes are missing.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut whole = [0; ATTRIBUTES_BYTES];
        let length = bytes.len().min(ATTRIBUTES_BYTES);
        whole[..length].copy_from_slice(&bytes[..length]);
        let mut times = [0; 8];
        for (i, time) in times.iter_mut().enumerate() {
            *time = i64_at(&whole, 56 + 8 * i);
        }
        Self {
            ino: u64_at(&whole, 0),
            size: u64_at(&whole, 8),
            blocks: u64_at(&whole, 16),
            nlink: u64_at(&whole, 24),
            mode: u32_at(&whole, 32),
            uid: u32_at(&whole, 36),
            gid: u32_at(&whole, 40),
            blksize: u32_at(&whole, 44),
            rdev: u64_at(&whole, 48),
            times,
        }
    }
}

/// Space of the backing file system. Blocks of `bsize` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statfs {
    pub bsize: u64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub namelen: u64,
    pub reserved: u64,
}

impl Statfs {
    /// Read what `to_bytes` wrote; zeros where bytes are missing.
    pub fn parse(bytes: &[u8]) -> Self {
        let word = |n: usize| {
            if bytes.len() < 8 * n + 8 {
                0
            } else {
                u64_at(bytes, 8 * n)
            }
        };
        Self {
            bsize: word(0),
            blocks: word(1),
            bfree: word(2),
            bavail: word(3),
            files: word(4),
            ffree: word(5),
            namelen: word(6),
            reserved: word(7),
        }
    }

    pub fn to_bytes(&self) -> [u8; STATFS_BYTES] {
        let mut bytes = [0; STATFS_BYTES];
        let words = [
            self.bsize,
            self.blocks,
            self.bfree,
            self.bavail,
            self.files,
            self.ffree,
            self.namelen,
            self.reserved,
        ];
        for (i, word) in words.iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
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
        if rest.len() < 20 {
            return None;
        }
        let length = usize::from(u16::from_le_bytes([rest[18], rest[19]]));
        let name = rest.get(20..20 + length)?;
        at += (20 + length).div_ceil(8) * 8;
        Some(Entry {
            ino: u64_at(rest, 0),
            cursor: u64_at(rest, 8),
            kind: rest[16],
            name,
        })
    })
}

/// Append a directory entry: inode (u64), cursor behind it (u64), type (u8), 0, length of the name
/// (u16), name, zeros up to a multiple of 8. Returns whether it fitted in `limit` bytes.
pub fn push_entry(out: &mut Vec<u8>, limit: usize, ino: u64, cursor: u64, kind: u8, name: &[u8]) -> bool {
    let length = (20 + name.len()).div_ceil(8) * 8;
    if out.len() + length > limit || name.len() > u16::MAX as usize {
        return false;
    }
    let end = out.len() + length;
    out.extend_from_slice(&ino.to_le_bytes());
    out.extend_from_slice(&cursor.to_le_bytes());
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
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
            times: [1, 2, 3, 4, 5, 6, 7, -8],
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
