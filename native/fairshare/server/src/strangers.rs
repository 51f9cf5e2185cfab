//! Connections that have not said who they are yet.
//!
//! A handshake takes a millisecond, so whoever waits long does not mean to end it. Where there are too many,
//! the oldest of whoever has most is closed: silent connections of one keep nobody else out.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::connection::Connection;

/// Time that a client has to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Where a connection comes from, as far as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    User(u32),
    Address(IpAddr),
}

/// By the connection's number: the oldest comes first.
pub struct Strangers {
    most: usize,
    table: Mutex<BTreeMap<u64, (Origin, Arc<Connection>)>>,
}

impl Strangers {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            table: Mutex::default(),
        }
    }

    /// A connection begins. The one that has to end for it, if any.
    pub fn enter(&self, origin: Origin, connection: &Arc<Connection>) -> Option<Arc<Connection>> {
        let mut table = self.table();
        table.insert(connection.id, (origin, Arc::clone(connection)));
        if table.len() <= self.most {
            return None;
        }
        let out = one_too_many(table.iter().map(|(id, (origin, _))| (*id, *origin)))?;
        table.remove(&out).map(|(_, connection)| connection)
    }

    /// A connection has said who it is, or has ended.
    pub fn leave(&self, id: u64) {
        self.table().remove(&id);
    }

    /// Those whose time is over.
    pub fn late(&self) -> Vec<Arc<Connection>> {
        let table = self.table();
        let all = table.values().map(|(_, connection)| connection);
        all.filter(|one| one.since.elapsed() > HANDSHAKE)
            .cloned()
            .collect()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, (Origin, Arc<Connection>)>> {
        self.table.lock().expect("no panics under this lock")
    }
}

/// The oldest of the origin that has most.
fn one_too_many(all: impl Iterator<Item = (u64, Origin)> + Clone) -> Option<u64> {
    let mut counts: HashMap<Origin, usize> = HashMap::new();
    for (_, origin) in all.clone() {
        *counts.entry(origin).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    all.clone()
        .find(|(_, origin)| counts[origin] == most)
        .map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_whoever_has_most_goes() {
        let (a, b) = (Origin::User(1), Origin::Address("10.0.0.1".parse().unwrap()));
        let all = [(3, a), (4, b), (5, b), (7, a), (9, b)];
        assert_eq!(one_too_many(all.into_iter()), Some(4));
        assert_eq!(one_too_many(all[..1].iter().copied()), Some(3));
        assert_eq!(one_too_many([].into_iter()), None);
    }
}
