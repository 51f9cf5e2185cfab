//! What mounts keep of files: their kernels have pages and attributes, and are told to drop them before whoever changes a
//! file some other way has his answer. So all see one file.
//!
//! A mount is noted at a file with each request by which its kernel gets something of the file, and forgotten as soon as it
//! is told to drop that: a file that only one writes to costs one such message, not one for each write.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The server's own mount. Other mounts have the numbers of their sessions.
pub const OWN: u64 = 0;
/// A mount that has not dropped a file after this time is taken to be lost.
pub const PATIENCE: Duration = Duration::from_secs(20);

struct Table<Done> {
    /// By file, the mounts that may have something of it.
    files: HashMap<u64, Vec<u64>>,
    /// By message: which mount has to say that it is done, and since when.
    waiting: HashMap<u64, (u64, Instant, Done)>,
    /// By file and mount, how many changes of that mount's wait for others to drop the file.
    held: HashMap<(u64, u64), usize>,
}

/// `Done` is what is called when a mount has dropped something.
pub struct Caches<Done> {
    table: Mutex<Table<Done>>,
    next: AtomicU64,
}

impl<Done> Default for Caches<Done> {
    fn default() -> Self {
        let table = Table {
            files: HashMap::new(),
            waiting: HashMap::new(),
            held: HashMap::new(),
        };
        Self {
            table: Mutex::new(table),
            next: AtomicU64::default(),
        }
    }
}

impl<Done> Caches<Done> {
    /// A mount's kernel gets something of a file.
    pub fn note(&self, ino: u64, mount: u64) {
        let mut table = self.table();
        let mounts = table.files.entry(ino).or_default();
        if !mounts.contains(&mount) {
            mounts.push(mount);
        }
    }

    /// The mounts that have something of a file, but for `except`; from now on they have nothing.
    pub fn take(&self, ino: u64, except: Option<u64>) -> Vec<u64> {
        let mut table = self.table();
        let Some(mounts) = table.files.get_mut(&ino) else {
            return Vec::new();
        };
        let (stays, told) = mounts.drain(..).partition(|mount| Some(*mount) == except);
        *mounts = stays;
        if mounts.is_empty() {
            table.files.remove(&ino);
        }
        told
    }

    /// Of the mounts that are told to drop a file: for which the change by mount `by` waits, and for which it does not. A
    /// mount whose own change waits may hold the page until it has its answer: each would wait for the other.
    pub fn hold(&self, ino: u64, by: Option<u64>, told: Vec<u64>) -> (Vec<u64>, Vec<u64>) {
        let mut table = self.table();
        let (later, first): (Vec<u64>, Vec<u64>) = told
            .into_iter()
            .partition(|mount| Some(*mount) == by || table.held.contains_key(&(ino, *mount)));
        if let Some(by) = by.filter(|_| !first.is_empty()) {
            *table.held.entry((ino, by)).or_default() += 1;
        }
        (first, later)
    }

    /// A change that waited is answered.
    pub fn answered(&self, ino: u64, by: Option<u64>) {
        let mut table = self.table();
        let Some(key) = by.map(|by| (ino, by)) else { return };
        if let Some(count) = table.held.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                table.held.remove(&key);
            }
        }
    }

    /// A mount is told to drop something: the number of the message.
    pub fn tell(&self, mount: u64, done: Done) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.table().waiting.insert(number, (mount, Instant::now(), done));
        number
    }

    /// A mount has dropped what message `number` named. Only its own word counts.
    pub fn dropped(&self, number: u64, mount: u64) -> Option<Done> {
        let mut table = self.table();
        table.waiting.get(&number).filter(|one| one.0 == mount)?;
        table.waiting.remove(&number).map(|(_, _, done)| done)
    }

    /// A mount is gone: nobody waits for it.
    pub fn gone(&self, mount: u64) -> Vec<Done> {
        let mut table = self.table();
        table.files.retain(|_, mounts| {
            mounts.retain(|one| *one != mount);
            !mounts.is_empty()
        });
        let numbers: Vec<u64> = table
            .waiting
            .iter()
            .filter(|(_, (of, _, _))| *of == mount)
            .map(|(number, _)| *number)
            .collect();
        let mut waiting = numbers.iter().filter_map(|number| table.waiting.remove(number));
        waiting.by_ref().map(|(_, _, done)| done).collect()
    }

    /// The mounts that have been silent for too long.
    pub fn late(&self) -> Vec<u64> {
        let table = self.table();
        let late = table.waiting.values().filter(|one| one.1.elapsed() > PATIENCE);
        late.map(|one| one.0).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table<Done>> {
        self.table.lock().expect("no panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_has_nothing_until_it_asks_again() {
        let caches = Caches::<()>::default();
        for mount in [OWN, 7, 8, 7] {
            caches.note(1, mount);
        }
        assert_eq!(
            caches.take(1, Some(7)),
            [OWN, 8],
            "who changes it keeps what it has"
        );
        assert!(caches.take(1, Some(7)).is_empty());
        caches.note(1, 8);
        assert_eq!(caches.take(1, None), [7, 8]);
        assert!(caches.table().files.is_empty());
    }

    #[test]
    fn two_mounts_that_change_a_file_do_not_wait_for_each_other() {
        let caches = Caches::<()>::default();
        assert_eq!(caches.hold(1, Some(7), vec![8]), (vec![8], vec![]));
        assert_eq!(caches.hold(1, Some(8), vec![7, 9]), (vec![9], vec![7]));
        assert_eq!(
            caches.hold(2, Some(8), vec![7]),
            (vec![7], vec![]),
            "another file"
        );
        caches.answered(1, Some(7));
        assert_eq!(caches.hold(1, None, vec![7]), (vec![7], vec![]));
    }

    #[test]
    fn nobody_waits_for_a_mount_that_is_gone_nor_believes_another() {
        let caches = Caches::<()>::default();
        let (_, second) = (caches.tell(7, ()), caches.tell(8, ()));
        assert!(caches.dropped(second, 7).is_none());
        assert_eq!(caches.gone(7).len(), 1);
        assert!(caches.dropped(second, 8).is_some());
        assert!(caches.table().waiting.is_empty());
    }
}
