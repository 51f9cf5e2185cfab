//! Files that the kernel has looked up: by inode number, each with a handle that names it.
//!
//! A handle holds a descriptor, and the kernel remembers files until it is short of memory. So where there are many, it
//! is asked to forget the oldest that nobody has open. Folders stay: one that is forgotten while a process works in it
//! has no path any more.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::sync::{Condvar, Mutex, MutexGuard};

use wire::ROOT;

/// The kernel's number of the root.
pub const ROOT_NODE: u64 = 1;

/// A name, and the kernel's number of the folder that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub folder: u64,
    pub name: OsString,
}

impl Place {
    pub fn new(folder: u64, name: &OsStr) -> Self {
        Self {
            folder,
            name: name.to_owned(),
        }
    }
}

struct Node {
    handle: u64,
    lookups: u64,
    opens: u64,
    place: Place,
    /// When it came, for what may be forgotten: a key of `State::order`.
    since: Option<u64>,
}

#[derive(Default)]
struct State {
    nodes: HashMap<u64, Node>,
    /// What may be forgotten, the oldest first.
    order: BTreeMap<u64, u64>,
    next: u64,
    /// How many came since the kernel was asked to forget some.
    came: usize,
    /// A lookup found no descriptor.
    full: bool,
}

pub struct Nodes {
    state: Mutex<State>,
    /// The kernel is asked to forget some where there are more.
    most: usize,
    crowded: Condvar,
}

impl Nodes {
    pub fn new(most: usize) -> Self {
        Self {
            state: Mutex::default(),
            most,
            crowded: Condvar::new(),
        }
    }

    /// The handle of a node. The kernel asks for no node that it has not looked up.
    pub fn handle(&self, node: u64) -> Option<u64> {
        if node == ROOT_NODE {
            return Some(ROOT);
        }
        self.state().nodes.get(&node).map(|node| node.handle)
    }

    /// Count a lookup that found inode `ino` as `handle`. Returns the handle that is not needed, if the
    /// node was known.
    pub fn found(&self, ino: u64, handle: u64, place: Place, folder: bool) -> Option<u64> {
        let mut state = self.state();
        if let Some(node) = state.nodes.get_mut(&ino) {
            node.lookups += 1;
            node.place = place;
            return Some(handle);
        }
        let since = (!folder).then_some(state.next);
        let node = Node {
            handle,
            lookups: 1,
            opens: 0,
            place,
            since,
        };
        state.nodes.insert(ino, node);
        if let Some(since) = since {
            state.next += 1;
            state.order.insert(since, ino);
        }
        state.came += 1;
        if self.too_many(&state) {
            self.crowded.notify_one();
        }
        None
    }

    /// The kernel forgets `count` lookups. Returns the handle to close, if they were all.
    pub fn forget(&self, ino: u64, count: u64) -> Option<u64> {
        let mut state = self.state();
        let node = state.nodes.get_mut(&ino)?;
        node.lookups = node.lookups.saturating_sub(count);
        if node.lookups > 0 {
            return None;
        }
        let node = state.nodes.remove(&ino)?;
        if let Some(since) = node.since {
            state.order.remove(&since);
        }
        Some(node.handle)
    }

    pub fn opened(&self, ino: u64) {
        if let Some(node) = self.state().nodes.get_mut(&ino) {
            node.opens += 1;
        }
    }

    pub fn closed(&self, ino: u64) {
        if let Some(node) = self.state().nodes.get_mut(&ino) {
            node.opens = node.opens.saturating_sub(1);
        }
    }

    /// There was no descriptor for a lookup: somebody's part is smaller than what the kernel remembers for him.
    pub fn none_left(&self) {
        self.state().full = true;
        self.crowded.notify_one();
    }

    /// Wait until there are too many; then the names of the older half that nobody has open.
    pub fn too_old(&self) -> Vec<Place> {
        let mut state = self.state();
        while !state.full && !self.too_many(&state) {
            state = self.crowded.wait(state).expect("no panics under this lock");
        }
        let keep = if state.full { state.order.len() } else { self.most } / 2;
        (state.full, state.came) = (false, 0);
        let old: Vec<(u64, u64)> = state.order.iter().map(|(since, ino)| (*since, *ino)).collect();
        let mut places = Vec::new();
        for (since, ino) in &old[..old.len().saturating_sub(keep)] {
            let State {
                nodes, order, next, ..
            } = &mut *state;
            let Some(node) = nodes.get_mut(ino).filter(|node| node.opens == 0) else {
                continue;
            };
            // The kernel may keep it, for whom it is of use: then others are asked for first.
            order.remove(since);
            order.insert(*next, *ino);
            node.since = Some(*next);
            *next += 1;
            places.push(node.place.clone());
        }
        places
    }

    /// Whether files come faster than the kernel is asked to forget others: each holds a descriptor.
    pub fn come_too_fast(&self) -> bool {
        let state = self.state();
        state.came > self.most && state.order.len() > self.most
    }

    /// Not after each lookup, where the kernel keeps what it was asked to forget.
    fn too_many(&self, state: &State) -> bool {
        state.order.len() > self.most && state.came > self.most / 8
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> Place {
        Place::new(ROOT_NODE, OsStr::new(name))
    }

    #[test]
    fn a_node_lives_as_long_as_its_lookups() {
        let nodes = Nodes::new(10);
        assert_eq!(nodes.found(7, 70, at("a"), false), None);
        assert_eq!(
            nodes.found(7, 71, at("b"), false),
            Some(71),
            "known: the second handle is not needed"
        );
        assert_eq!(nodes.handle(7), Some(70));
        assert_eq!(nodes.forget(7, 1), None);
        assert_eq!(nodes.forget(7, 1), Some(70));
        assert_eq!(nodes.handle(7), None);
    }

    #[test]
    fn the_oldest_that_nobody_has_open_are_too_many() {
        let nodes = Nodes::new(8);
        nodes.found(100, 0, at("folder"), true);
        for n in 0..9 {
            nodes.found(n + 2, n, at(&n.to_string()), false);
        }
        nodes.opened(3);
        nodes.found(2, 0, at("renamed"), false);
        // Four of nine stay, and number 1, which is open.
        assert!(
            nodes.come_too_fast(),
            "nine since the kernel was asked to forget some"
        );
        assert_eq!(nodes.too_old(), ["renamed", "2", "3", "4"].map(at));
        assert!(!nodes.come_too_fast());
        // Those were not forgotten: next come the ones behind them.
        nodes.closed(3);
        nodes.none_left();
        assert_eq!(nodes.too_old(), ["1", "5", "6", "7", "8"].map(at));
    }
}
