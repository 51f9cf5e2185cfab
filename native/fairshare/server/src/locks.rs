//! Locks of files: held on a part of a file by an owner of a mount, which is a process for fcntl's and an open file for
//! flock's. All mounts of the server share them.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::errno::{Errno, Result};
use crate::mapping::FileId;

/// Locks that one file may have, and one account on all files; beyond it ENOLCK.
const MOST: usize = 16384;
/// Bytes that the locks of an account take at most.
pub const MEMORY: u64 = (MOST * std::mem::size_of::<RecordLock>()) as u64;

/// The mount, and its kernel's number for who it is.
pub type Owner = (u64, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLock {
    pub start: u64,
    /// One behind the last byte; u64::MAX for "to the end, wherever that is".
    pub end: u64,
    pub exclusive: bool,
    pub owner: Owner,
    /// To whom it counts: a user of the server's own mount, or the session of another one.
    pub account: u64,
    /// The process that took it, for whoever asks.
    pub pid: u32,
}

impl RecordLock {
    fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.owner != other.owner && (self.exclusive || other.exclusive) && self.overlaps(other)
    }
}

/// The account of a session, apart from those of users.
pub fn account_of_session(session: u64) -> u64 {
    session | 1 << 63
}

#[derive(Default)]
struct Table {
    files: HashMap<FileId, Vec<RecordLock>>,
    accounts: HashMap<u64, Account>,
}

/// How many locks an account has, and on which files. Where a session ends they are not looked for on all files of all
/// others, while everybody waits for the table.
#[derive(Default)]
struct Account {
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
        let locks = table.files.get(&file);
        if locks.is_some_and(|locks| locks.iter().any(|held| held.conflicts(&wanted))) {
            return Err(Errno(libc::EAGAIN));
        }
        table.change(file, wanted.owner, (wanted.start, wanted.end), Some(wanted))
    }

    /// Give up a part. ENOLCK where that makes one lock two, and two are too many.
    pub fn unset(&self, file: FileId, owner: Owner, start: u64, end: u64) -> Result<()> {
        let mut table = self.0.lock().expect("no panics under this lock");
        table.change(file, owner, (start, end), None)
    }

    /// All locks of a session that has ended.
    pub fn session_ended(&self, session: u64) {
        let mut table = self.0.lock().expect("no panics under this lock");
        let account = account_of_session(session);
        let Some(ended) = table.accounts.remove(&account) else {
            return;
        };
        for file in ended.files {
            if let Some(locks) = table.files.get_mut(&file) {
                locks.retain(|held| held.account != account);
                if locks.is_empty() {
                    table.files.remove(&file);
                }
            }
        }
    }
}

impl Table {
    /// Take a part out of what `owner` holds, and put `new` there.
    fn change(
        &mut self,
        file: FileId,
        owner: Owner,
        (start, end): (u64, u64),
        new: Option<RecordLock>,
    ) -> Result<()> {
        let before = self.files.get(&file).cloned().unwrap_or_default();
        let mut after = before.clone();
        cut(&mut after, owner, start, end);
        after.extend(new);
        let has =
            |account: u64, locks: &[RecordLock]| locks.iter().filter(|one| one.account == account).count();
        let touched: HashSet<u64> = before.iter().chain(&after).map(|one| one.account).collect();
        for account in &touched {
            let more = has(*account, &after).saturating_sub(has(*account, &before));
            let all = self.accounts.get(account).map_or(0, |account| account.count);
            if more > 0 && (after.len() > MOST || all + more > MOST) {
                return Err(Errno(libc::ENOLCK));
            }
        }
        for account in touched {
            let now = has(account, &after);
            let entry = self.accounts.entry(account).or_default();
            entry.count = entry.count + now - has(account, &before);
            if now > 0 {
                entry.files.insert(file);
            } else {
                entry.files.remove(&file);
            }
            if entry.count == 0 {
                self.accounts.remove(&account);
            }
        }
        if after.is_empty() {
            self.files.remove(&file);
        } else {
            self.files.insert(file, after);
        }
        Ok(())
    }
}

/// Take [start, end) out of what `owner` holds; what lies around it stays.
fn cut(locks: &mut Vec<RecordLock>, owner: Owner, start: u64, end: u64) {
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

    fn of(number: u64) -> Owner {
        (0, number)
    }

    /// Of an owner who has an account, a session of the same number, of its own.
    fn lock(start: u64, end: u64, exclusive: bool, owner: u64) -> RecordLock {
        RecordLock {
            start,
            end,
            exclusive,
            owner: of(owner),
            account: account_of_session(owner),
            pid: 0,
        }
    }

    #[test]
    fn writers_exclude_and_readers_share() {
        let locks = RecordLocks::default();
        locks.set(FILE, lock(0, 10, false, 1)).unwrap();
        locks.set(FILE, lock(5, 15, false, 2)).unwrap();
        assert_eq!(locks.set(FILE, lock(9, 11, true, 3)), Err(Errno(libc::EAGAIN)));
        locks.set(FILE, lock(15, u64::MAX, true, 3)).unwrap();
        assert_eq!(
            locks.conflict(FILE, &lock(100, 101, false, 1)).unwrap().owner,
            of(3)
        );
        // The same number of another mount is somebody else.
        let other = RecordLock {
            owner: (1, 3),
            ..lock(20, 21, true, 3)
        };
        assert_eq!(locks.set(FILE, other), Err(Errno(libc::EAGAIN)));
    }

    #[test]
    fn one_account_has_only_so_many_on_all_files_together() {
        let locks = RecordLocks::default();
        for file in 0..2 {
            locks.set((1, file), lock(0, u64::MAX, true, 1)).unwrap();
        }
        // Each hole makes one lock two.
        let holes = |file: u64| {
            let holed = |n: &u64| locks.unset((1, file), of(1), 2 * n + 1, 2 * n + 2).is_ok();
            (0..2 * MOST as u64).step_by(MOST / 64).take_while(holed).count()
        };
        assert_eq!(holes(0), 128, "as many as are tried: there is room");
        let mut table = locks.0.lock().unwrap();
        table.accounts.get_mut(&account_of_session(1)).unwrap().count = MOST - 1;
        drop(table);
        assert_eq!(holes(1), 1);
        // Another process with the same account has no room either, another account has.
        let same = RecordLock {
            owner: of(7),
            ..lock(0, 1, true, 1)
        };
        assert_eq!(locks.set((1, 9), same), Err(Errno(libc::ENOLCK)));
        locks.set((1, 9), lock(0, 1, true, 2)).unwrap();
        locks.session_ended(1);
        locks.set((1, 0), lock(0, 1, true, 2)).unwrap();
    }

    #[test]
    fn a_session_that_ends_leaves_nothing_behind() {
        let locks = RecordLocks::default();
        let owned = || {
            let table = locks.0.lock().unwrap();
            let files = table.accounts.get(&account_of_session(1)).map(|one| &one.files);
            let mut files: Vec<u64> = files.map_or(vec![], |files| files.iter().map(|file| file.1).collect());
            files.sort_unstable();
            (files, table.files.len())
        };
        for file in [1, 2, 3] {
            locks.set((1, file), lock(0, 9, false, 1)).unwrap();
        }
        locks.set((1, 3), lock(0, 9, false, 2)).unwrap();
        assert_eq!(owned(), (vec![1, 2, 3], 3));
        locks.unset((1, 2), of(1), 0, 5).unwrap();
        locks.unset((1, 1), of(1), 0, u64::MAX).unwrap();
        assert_eq!(owned(), (vec![2, 3], 2), "a part of the second one is left");
        locks.session_ended(1);
        assert_eq!(owned(), (vec![], 1), "another's");
        locks.session_ended(2);
        assert_eq!(owned(), (vec![], 0));
    }

    #[test]
    fn unlocking_the_middle_leaves_both_ends() {
        let locks = RecordLocks::default();
        locks.set(FILE, lock(0, 30, true, 1)).unwrap();
        locks.unset(FILE, of(1), 10, 20).unwrap();
        assert!(locks.conflict(FILE, &lock(0, 10, false, 2)).is_some());
        assert!(locks.conflict(FILE, &lock(10, 20, false, 2)).is_none());
        assert!(locks.conflict(FILE, &lock(20, 21, false, 2)).is_some());
        locks.session_ended(1);
        assert!(locks.conflict(FILE, &lock(0, 99, true, 2)).is_none());
    }
}
