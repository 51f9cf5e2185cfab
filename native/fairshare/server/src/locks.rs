//! Record locks of fcntl: owned by a process, held on a file, gone when it closes any descriptor of it.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::errno::{Errno, Result};
use crate::mapping::FileId;

/// Locks that one file may have; beyond it ENOLCK.
const MOST: usize = 16384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLock {
    pub start: u64,
    /// One behind the last byte; u64::MAX for "to the end, wherever that is".
    pub end: u64,
    pub exclusive: bool,
    /// The session (a process).
    pub owner: u64,
}

impl RecordLock {
    fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.owner != other.owner && (self.exclusive || other.exclusive) && self.overlaps(other)
    }
}

#[derive(Default)]
pub struct RecordLocks(Mutex<HashMap<FileId, Vec<RecordLock>>>);

impl RecordLocks {
    /// Who is in the way of `wanted`, if anybody.
    pub fn conflict(&self, file: FileId, wanted: &RecordLock) -> Option<RecordLock> {
        let table = self.0.lock().expect("no panics under this lock");
        table
            .get(&file)?
            .iter()
            .find(|held| held.conflicts(wanted))
            .copied()
    }

    /// Take a lock, replacing what its owner held there. EAGAIN where somebody is in the way.
    pub fn set(&self, file: FileId, wanted: RecordLock) -> Result<()> {
        let mut table = self.0.lock().expect("no panics under this lock");
        let locks = table.entry(file).or_default();
        if locks.iter().any(|held| held.conflicts(&wanted)) {
            return Err(Errno(libc::EAGAIN));
        }
        if locks.len() + 2 > MOST {
            return Err(Errno(libc::ENOLCK));
        }
        cut(locks, wanted.owner, wanted.start, wanted.end);
        locks.push(wanted);
        Ok(())
    }

    pub fn unset(&self, file: FileId, owner: u64, start: u64, end: u64) {
        let mut table = self.0.lock().expect("no panics under this lock");
        if let Some(locks) = table.get_mut(&file) {
            cut(locks, owner, start, end);
            if locks.is_empty() {
                table.remove(&file);
            }
        }
    }

    /// All locks of a process that has ended.
    pub fn drop_owner(&self, owner: u64) {
        let mut table = self.0.lock().expect("no panics under this lock");
        table.retain(|_, locks| {
            locks.retain(|held| held.owner != owner);
            !locks.is_empty()
        });
    }
}

/// Take [start, end) out of what `owner` holds; what lies around it stays.
fn cut(locks: &mut Vec<RecordLock>, owner: u64, start: u64, end: u64) {
    let mut rest = Vec::new();
    locks.retain(|held| {
        if held.owner != owner || held.end <= start || end <= held.start {
            return true;
        }
        if held.start < start {
            rest.push(RecordLock { end: start, ..*held });
        }
        if end < held.end {
            rest.push(RecordLock { start: end, ..*held });
        }
        false
    });
    locks.append(&mut rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = (1, 2);

    fn lock(start: u64, end: u64, exclusive: bool, owner: u64) -> RecordLock {
        RecordLock {
            start,
            end,
            exclusive,
            owner,
        }
    }

    #[test]
    fn writers_exclude_and_readers_share() {
        let locks = RecordLocks::default();
        locks.set(FILE, lock(0, 10, false, 1)).unwrap();
        locks.set(FILE, lock(5, 15, false, 2)).unwrap();
        assert_eq!(locks.set(FILE, lock(9, 11, true, 3)), Err(Errno(libc::EAGAIN)));
        locks.set(FILE, lock(15, u64::MAX, true, 3)).unwrap();
        assert_eq!(locks.conflict(FILE, &lock(100, 101, false, 1)).unwrap().owner, 3);
    }

    #[test]
    fn unlocking_the_middle_leaves_both_ends() {
        let locks = RecordLocks::default();
        locks.set(FILE, lock(0, 30, true, 1)).unwrap();
        locks.unset(FILE, 1, 10, 20);
        assert!(locks.conflict(FILE, &lock(0, 10, false, 2)).is_some());
        assert!(locks.conflict(FILE, &lock(10, 20, false, 2)).is_none());
        assert!(locks.conflict(FILE, &lock(20, 21, false, 2)).is_some());
        locks.drop_owner(1);
        assert!(locks.conflict(FILE, &lock(0, 99, true, 2)).is_none());
    }
}
