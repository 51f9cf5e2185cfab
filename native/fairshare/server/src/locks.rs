//! Record locks of fcntl: owned by a process, held on a file, gone when it closes any descriptor of it.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::errno::{Errno, Result};
use crate::mapping::FileId;

/// Locks that one file may have, and one process on all files; beyond it ENOLCK.
const MOST: usize = 16384;
/// Bytes that the locks of a process take at most.
pub const MEMORY: u64 = (MOST * std::mem::size_of::<RecordLock>()) as u64;

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
struct Table {
    files: HashMap<FileId, Vec<RecordLock>>,
    owned: HashMap<u64, Owned>,
}

/// What an owner has: how many locks, and on which files. Where one ends it is not looked for on all files of all others,
/// while everybody waits for the table.
#[derive(Default)]
struct Owned {
    count: usize,
    files: HashSet<FileId>,
}

#[derive(Default)]
pub struct RecordLocks(Mutex<Table>);

impl RecordLocks {
    /// Who is in the way of `wanted`, if anybody.
    pub fn conflict(&self, file: FileId, wanted: &RecordLock) -> Option<RecordLock> {
        let table = self.0.lock().expect("no panics under this lock");
        table
            .files
            .get(&file)?
            .iter()
            .find(|held| held.conflicts(wanted))
            .copied()
    }

    /// Take a lock, replacing what its owner held there. EAGAIN where somebody is in the way.
    pub fn set(&self, file: FileId, wanted: RecordLock) -> Result<()> {
        let mut table = self.0.lock().expect("no panics under this lock");
        let locks = table.files.entry(file).or_default();
        if locks.iter().any(|held| held.conflicts(&wanted)) {
            return Err(Errno(libc::EAGAIN));
        }
        table.change(file, wanted.owner, wanted.start, wanted.end, Some(wanted))
    }

    /// Give up a part. ENOLCK where that makes one lock two, and two are too many.
    pub fn unset(&self, file: FileId, owner: u64, start: u64, end: u64) -> Result<()> {
        let mut table = self.0.lock().expect("no panics under this lock");
        table.change(file, owner, start, end, None)
    }

    /// All locks of a process that has ended.
    pub fn drop_owner(&self, owner: u64) {
        let mut table = self.0.lock().expect("no panics under this lock");
        let Some(owned) = table.owned.remove(&owner) else {
            return;
        };
        for file in owned.files {
            if let Some(locks) = table.files.get_mut(&file) {
                locks.retain(|held| held.owner != owner);
                if locks.is_empty() {
                    table.files.remove(&file);
                }
            }
        }
    }
}

impl Table {
    /// Take [start, end) out of what `owner` holds, and put `new` there.
    fn change(
        &mut self,
        file: FileId,
        owner: u64,
        start: u64,
        end: u64,
        new: Option<RecordLock>,
    ) -> Result<()> {
        let Some(locks) = self.files.get_mut(&file) else {
            return Ok(());
        };
        let mut changed = locks.clone();
        cut(&mut changed, owner, start, end);
        changed.extend(new);
        let has = self.owned.get(&owner).map_or(0, |owned| owned.count);
        let count = (has + changed.len()) - locks.len();
        if changed.len() > locks.len() && (changed.len() > MOST || count > MOST) {
            if locks.is_empty() {
                self.files.remove(&file);
            }
            return Err(Errno(libc::ENOLCK));
        }
        let mine = changed.iter().any(|held| held.owner == owner);
        *locks = changed;
        if locks.is_empty() {
            self.files.remove(&file);
        }
        if count == 0 {
            self.owned.remove(&owner);
            return Ok(());
        }
        let owned = self.owned.entry(owner).or_default();
        owned.count = count;
        if mine {
            owned.files.insert(file);
        } else {
            owned.files.remove(&file);
        }
        Ok(())
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
    fn one_process_has_only_so_many_on_all_files_together() {
        let locks = RecordLocks::default();
        for file in 0..2 {
            locks.set((1, file), lock(0, u64::MAX, true, 1)).unwrap();
        }
        // Each hole makes one lock two.
        let holes = |file: u64| {
            let holed = |n: &u64| locks.unset((1, file), 1, 2 * n + 1, 2 * n + 2).is_ok();
            (0..2 * MOST as u64).take_while(holed).count()
        };
        assert_eq!((holes(0), holes(1)), (MOST - 2, 0));
        assert_eq!(locks.set((1, 9), lock(0, 1, true, 1)), Err(Errno(libc::ENOLCK)));
        locks.set((1, 9), lock(0, 1, true, 2)).unwrap();
        locks.drop_owner(1);
        locks.set((1, 0), lock(0, 1, true, 2)).unwrap();
    }

    #[test]
    fn a_process_that_ends_leaves_nothing_behind() {
        let locks = RecordLocks::default();
        let owned = || {
            let table = locks.0.lock().unwrap();
            let mut files: Vec<_> = table
                .owned
                .get(&1)
                .map_or(vec![], |owned| owned.files.iter().map(|file| file.1).collect());
            files.sort_unstable();
            (files, table.files.len())
        };
        for file in [1, 2, 3] {
            locks.set((1, file), lock(0, 9, false, 1)).unwrap();
        }
        locks.set((1, 3), lock(0, 9, false, 2)).unwrap();
        assert_eq!(owned(), (vec![1, 2, 3], 3));
        locks.unset((1, 2), 1, 0, 5).unwrap();
        locks.unset((1, 1), 1, 0, u64::MAX).unwrap();
        assert_eq!(owned(), (vec![2, 3], 2), "a part of the second one is left");
        locks.drop_owner(1);
        assert_eq!(owned(), (vec![], 1), "another's");
        locks.drop_owner(2);
        assert_eq!(owned(), (vec![], 0));
    }

    #[test]
    fn unlocking_the_middle_leaves_both_ends() {
        let locks = RecordLocks::default();
        locks.set(FILE, lock(0, 30, true, 1)).unwrap();
        locks.unset(FILE, 1, 10, 20).unwrap();
        assert!(locks.conflict(FILE, &lock(0, 10, false, 2)).is_some());
        assert!(locks.conflict(FILE, &lock(10, 20, false, 2)).is_none());
        assert!(locks.conflict(FILE, &lock(20, 21, false, 2)).is_some());
        locks.drop_owner(1);
        assert!(locks.conflict(FILE, &lock(0, 99, true, 2)).is_none());
    }
}
