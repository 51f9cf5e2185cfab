//! Files that the kernel has looked up: by inode number, each with a handle that names it.
//!
//! A handle holds a descriptor, and the kernel remembers files until it is short of memory. So where there are many, it
//! is asked to forget the oldest that nobody has open. Folders stay: one that is forgotten while a process works in it
//! has no path any more.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use wire::ROOT;

use crate::outcome::Change;

/// The kernel's number of the root.
pub const ROOT_NODE: u64 = 1;

/// Files of which it is told apart when they were changed last.
const CHANGED: usize = 4096;

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

/// What the kernel has to forget.
#[derive(Debug, PartialEq, Eq)]
pub enum Forget {
    /// Attributes of a file, and where `data` also its data. It was found at `place`.
    File {
        number: u64,
        data: bool,
        place: Option<Place>,
    },
    /// What a name stands for.
    Name(Place),
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
    /// The root's inode number.
    root: u64,
    /// For how long the kernel may keep what it was told of names and attributes.
    keep: Duration,
    /// Counts changes by others, and by inode number (modulo their number) which one was the last: answers that are
    /// under way may be older.
    changes: AtomicU64,
    changed: Vec<AtomicU64>,
    /// The kernel is asked to forget some where there are more.
    most: usize,
    crowded: Condvar,
}

impl Nodes {
    pub fn new(most: usize, root: u64, keep: Duration) -> Self {
        Self {
            state: Mutex::default(),
            root,
            keep,
            changes: AtomicU64::new(0),
            changed: (0..CHANGED).map(|_| AtomicU64::new(0)).collect(),
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

    /// To be asked before a file is looked up: what [`Nodes::kept_since`] wants.
    pub fn before_lookup(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// How long the kernel may keep what a lookup said, which began at `before`: not at all where somebody else has changed
    /// the file since. Asked after the node was noted.
    pub fn kept_since(&self, before: u64, ino: u64) -> Duration {
        if self.last_change(ino).load(Ordering::SeqCst) <= before {
            self.keep
        } else {
            Duration::ZERO
        }
    }

    fn last_change(&self, ino: u64) -> &AtomicU64 {
        &self.changed[ino as usize % CHANGED]
    }

    /// How long the kernel may keep attributes of a file that it knows.
    pub fn keep(&self) -> Duration {
        self.keep
    }

    /// What the kernel has to forget after such changes by others.
    pub fn to_forget(&self, data: Option<u64>, metadata: &[Change]) -> Vec<Forget> {
        let attributes = metadata.iter().filter_map(|change| match change {
            Change::Attributes(ino) => Some(*ino),
            Change::Entry { .. } => None,
        });
        let files = data
            .into_iter()
            .map(|ino| (ino, true))
            .chain(attributes.map(|ino| (ino, false)));
        let names = metadata.iter().filter_map(|change| match change {
            Change::Entry { folder, name } => {
                let folder = self.number(*folder)?;
                Some(Forget::Name(Place::new(folder, OsStr::from_bytes(name))))
            }
            Change::Attributes(_) => None,
        });
        files
            .filter_map(|(ino, data)| self.file_to_forget(ino, data))
            .chain(names)
            .collect()
    }

    fn file_to_forget(&self, ino: u64, data: bool) -> Option<Forget> {
        // First: a lookup that notes it from now on is not kept.
        let change = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
        self.last_change(ino).fetch_max(change, Ordering::SeqCst);
        let number = self.number(ino)?;
        let state = self.state();
        let node = state.nodes.get(&number);
        Some(Forget::File {
            number,
            // The kernel keeps no data of what nobody has open or mapped.
            data: data && node.is_some_and(|node| node.opens > 0),
            place: node.map(|node| node.place.clone()),
        })
    }

    /// The kernel's number of a file that it knows.
    fn number(&self, ino: u64) -> Option<u64> {
        if ino == self.root {
            return Some(ROOT_NODE);
        }
        self.state().nodes.contains_key(&ino).then_some(ino)
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

    const KEEP: Duration = Duration::from_secs(1);

    fn at(name: &str) -> Place {
        Place::new(ROOT_NODE, OsStr::new(name))
    }

    #[test]
    fn a_node_lives_as_long_as_its_lookups() {
        let nodes = Nodes::new(10, 1000, KEEP);
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
        let nodes = Nodes::new(8, 1000, KEEP);
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

    #[test]
    fn the_kernel_forgets_what_it_may_have_of_what_others_change() {
        let nodes = Nodes::new(8, 1000, KEEP);
        nodes.found(7, 70, at("a"), false);
        let file = |number, data, name: Option<&str>| Forget::File {
            number,
            data,
            place: name.map(at),
        };
        let forgotten = |data, metadata: &[Change]| nodes.to_forget(data, metadata);
        assert_eq!(
            forgotten(Some(7), &[]),
            [file(7, false, Some("a"))],
            "nobody has it open: no data"
        );
        nodes.opened(7);
        assert_eq!(forgotten(Some(7), &[]), [file(7, true, Some("a"))]);
        let gone = |folder| Change::Entry {
            folder,
            name: b"a".to_vec(),
        };
        assert_eq!(
            forgotten(None, &[gone(1000), Change::Attributes(7)]),
            [file(7, false, Some("a")), Forget::Name(at("a"))],
            "the root has the kernel's number"
        );
        assert_eq!(
            forgotten(None, &[gone(50)]),
            [],
            "a folder of which it knows nothing"
        );
    }

    #[test]
    fn what_changes_while_it_is_looked_up_is_not_kept() {
        let nodes = Nodes::new(8, 1000, KEEP);
        let before = nodes.before_lookup();
        assert_eq!(
            nodes.to_forget(Some(7), &[]),
            [],
            "the kernel does not know it yet"
        );
        nodes.found(7, 70, at("a"), false);
        assert_eq!(nodes.kept_since(before, 7), Duration::ZERO);
        assert_eq!(nodes.kept_since(before, 8), KEEP, "another file");
        assert_eq!(nodes.kept_since(nodes.before_lookup(), 7), KEEP);
    }
}
