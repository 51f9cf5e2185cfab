//! Files that the kernel has looked up: by inode number, each with a handle that names it.

use std::collections::HashMap;
use std::sync::Mutex;

use wire::ROOT;

/// The kernel's number of the root.
pub const ROOT_NODE: u64 = 1;

struct Node {
    handle: u64,
    lookups: u64,
}

#[derive(Default)]
pub struct Nodes(Mutex<HashMap<u64, Node>>);

impl Nodes {
    /// The handle of a node. The kernel asks for no node that it has not looked up.
    pub fn handle(&self, node: u64) -> Option<u64> {
        if node == ROOT_NODE {
            return Some(ROOT);
        }
        self.0
            .lock()
            .expect("no panics under this lock")
            .get(&node)
            .map(|node| node.handle)
    }

    /// Count a lookup that found inode `ino` as `handle`. Returns the handle that is not needed, if the
    /// node was known.
    pub fn found(&self, ino: u64, handle: u64) -> Option<u64> {
        let mut nodes = self.0.lock().expect("no panics under this lock");
        match nodes.get_mut(&ino) {
            Some(node) => {
                node.lookups += 1;
                Some(handle)
            }
            None => {
                nodes.insert(ino, Node { handle, lookups: 1 });
                None
            }
        }
    }

    /// The kernel forgets `count` lookups. Returns the handle to close, if they were all.
    pub fn forget(&self, ino: u64, count: u64) -> Option<u64> {
        let mut nodes = self.0.lock().expect("no panics under this lock");
        let node = nodes.get_mut(&ino)?;
        node.lookups = node.lookups.saturating_sub(count);
        if node.lookups > 0 {
            return None;
        }
        nodes.remove(&ino).map(|node| node.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_lives_as_long_as_its_lookups() {
        let nodes = Nodes::default();
        assert_eq!(nodes.found(7, 70), None);
        assert_eq!(
            nodes.found(7, 71),
            Some(71),
            "known: the second handle is not needed"
        );
        assert_eq!(nodes.handle(7), Some(70));
        assert_eq!(nodes.forget(7, 1), None);
        assert_eq!(nodes.forget(7, 1), Some(70));
        assert_eq!(nodes.handle(7), None);
    }
}
