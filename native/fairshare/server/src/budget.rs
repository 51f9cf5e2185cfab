//! What there is of something that runs out (descriptors, memory, mappings), and how much of it a user may have:
//! never more than is left free for others.
//!
//! So one user alone gets half of it, two get a third each, and whoever comes next still finds as much as the
//! greediest has. Root and the server's own user may take all that is free.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::accounts::user_of;
use crate::safe::own;

#[derive(Clone)]
pub struct Budget(Arc<Mutex<State>>);

struct State {
    total: u64,
    used: u64,
    by_user: HashMap<u32, u64>,
}

/// A part that somebody has, until it is dropped.
pub struct Held {
    budget: Budget,
    uid: u32,
    amount: u64,
}

impl Budget {
    pub fn new(total: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            total,
            used: 0,
            by_user: HashMap::new(),
        })))
    }

    /// Take a part for a user; None where too little would be left for others.
    pub fn take(&self, uid: u32, amount: u64) -> Option<Held> {
        let uid = user_of(uid);
        let mut state = self.state();
        let has = state.by_user.get(&uid).copied().unwrap_or(0) + amount;
        let free = state.total.checked_sub(state.used + amount)?;
        if has > free && !own(uid) {
            return None;
        }
        state.used += amount;
        state.by_user.insert(uid, has);
        Some(Held {
            budget: self.clone(),
            uid,
            amount,
        })
    }

    /// What there is, for all users.
    pub fn total(&self) -> u64 {
        self.state().total
    }

    /// What a user has.
    pub fn of(&self, uid: u32) -> u64 {
        self.state().by_user.get(&user_of(uid)).copied().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panics under this lock")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.used -= self.amount;
        if let Some(has) = state.by_user.get_mut(&self.uid) {
            *has -= self.amount;
            if *has == 0 {
                state.by_user.remove(&self.uid);
            }
        }
    }
}

/// What all users together may have on this machine.
pub struct Budgets {
    pub descriptors: Budget,
    /// Bytes for sessions.
    pub memory: Budget,
    /// Mappings of files: the kernel counts them for each process.
    pub mappings: Budget,
    /// Connections that have not said who they are; of these the oldest of whoever has most makes room.
    pub strangers: usize,
}

/// Descriptors that the server needs itself, beside [`FOR_A_WORKER`].
const FOR_THE_SERVER: u64 = 64;
/// Descriptors that one operation has open at a time, at most.
const FOR_A_WORKER: u64 = 6;
const MOST_STRANGERS: u64 = 256;

impl Budgets {
    /// Of what the machine lets this process have now.
    pub fn of_this_machine(workers: usize) -> Self {
        let limit = descriptor_limit();
        let strangers = MOST_STRANGERS.min(limit / 8);
        let reserved = FOR_THE_SERVER + FOR_A_WORKER * workers as u64 + strangers;
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        Self {
            descriptors: Budget::new(limit.saturating_sub(reserved)),
            memory: Budget::new(memory() / 2),
            mappings: Budget::new(number("/proc/sys/vm/max_map_count").unwrap_or(65530) / 2),
            strangers: strangers as usize,
        }
    }
}

fn descriptor_limit() -> u64 {
    // SAFETY: rlimit is plain data.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur.min(1 << 30)
    }
}

/// Bytes that are available on this machine and to this control group.
fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let machine = kib.map_or(1 << 30, |kib| kib << 10);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let limit = group.and_then(|path| limit_of(Path::new("/sys/fs/cgroup"), path));
    limit.map_or(machine, |limit| limit.min(machine))
}

/// What a control group may have, with all those that it lies in.
fn limit_of(root: &Path, group: &str) -> Option<u64> {
    let above = Path::new(group.trim_start_matches('/')).ancestors();
    let files = above.flat_map(|group| ["memory.max", "memory.high"].map(|name| root.join(group).join(name)));
    let limits = files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: u32 = 54321;
    const BOB: u32 = 54322;
    const CAROL: u32 = 54323;

    fn as_many(budget: &Budget, uid: u32) -> Vec<Held> {
        std::iter::from_fn(|| budget.take(uid, 1)).collect()
    }

    #[test]
    fn each_user_leaves_as_much_as_it_has() {
        let budget = Budget::new(120);
        let alice = as_many(&budget, ALICE);
        let bob = as_many(&budget, BOB);
        let carol = as_many(&budget, CAROL);
        // Half of 120; half of the other 60; half of what is left then.
        assert_eq!((alice.len(), bob.len(), carol.len()), (60, 30, 15));
        drop(alice);
        assert_eq!(budget.of(ALICE), 0);
        assert_eq!(as_many(&budget, CAROL).len(), 30, "45 then, of 90 that bob left");
        drop(bob);
    }

    #[test]
    fn a_group_has_no_more_than_those_that_it_lies_in() {
        let root = std::env::temp_dir().join(format!("fairshare-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("slice/service")).unwrap();
        assert_eq!(limit_of(&root, "/slice/service"), None);
        fs::write(root.join("slice/service/memory.max"), "max\n").unwrap();
        fs::write(root.join("slice/memory.max"), "5000\n").unwrap();
        assert_eq!(limit_of(&root, "/slice/service"), Some(5000));
        fs::write(root.join("slice/service/memory.high"), "400\n").unwrap();
        assert_eq!(limit_of(&root, "/slice/service"), Some(400));
        assert_eq!(limit_of(&root, "/slice"), Some(5000));
        assert_eq!(limit_of(&root, "/"), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn root_takes_what_is_free() {
        let budget = Budget::new(10);
        let bob = as_many(&budget, BOB);
        assert_eq!((bob.len(), as_many(&budget, 0).len()), (5, 5));
        assert!(budget.take(BOB, 11).is_none());
    }
}
