//! To whom a user's share and limits count.
//!
//! Where users may have subordinate ids (subuid(5)), each can act as tens of thousands of others: whoever runs rootless
//! containers does. The kernel vouches for each of them, and files belong to them; but they are one user, with one share
//! and one part of what runs out. Root's own ranges are left alone: those are containers that an administrator made. So
//! is an id that has a name of its own, which some ranges take in by mistake.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::mem;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Users and groups, and where the system says to whom they belong.
const USERS: &str = "/etc/subuid";
const GROUPS: &str = "/etc/subgid";
/// Between two looks at whether a file has changed.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The user to whom `uid` counts: itself, or the one to whom it is subordinate.
pub fn user_of(uid: u32) -> u32 {
    owner(uid, USERS).map_or(uid, |(uid, _)| uid)
}

/// User and group to whom a process counts. Somebody subordinate is in the first group of whoever it belongs to.
pub fn of(uid: u32, gid: u32) -> (u32, u32) {
    match owner(uid, USERS) {
        Some(found) => found,
        None => (uid, owner(gid, GROUPS).map_or(gid, |(_, gid)| gid)),
    }
}

fn owner(id: u32, path: &'static str) -> Option<(u32, u32)> {
    static TABLES: OnceLock<[Mutex<Table>; 2]> = OnceLock::new();
    let tables = TABLES.get_or_init(Default::default);
    let table = &tables[usize::from(path == GROUPS)];
    let mut table = table.lock().expect("no panics under this lock");
    table.look(path);
    let has_name = if path == GROUPS {
        group_has_name
    } else {
        user_has_name
    };
    table.owner(id, account, has_name)
}

/// Ids of one kind that belong to others.
#[derive(Default)]
struct Table {
    looked: Option<Instant>,
    changed: Option<SystemTime>,
    ranges: Vec<Range>,
    /// What names stand for: asking for one may take a server's answer.
    known: HashMap<String, Option<(u32, u32)>>,
    /// Whether ids within the ranges have names.
    named: HashMap<u32, bool>,
}

/// Ids that are remembered at most.
const MOST_NAMED: usize = 1 << 17;

struct Range {
    owner: String,
    first: u32,
    count: u32,
}

impl Table {
    fn look(&mut self, path: &str) {
        if self.looked.is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS) {
            return;
        }
        self.looked = Some(Instant::now());
        let changed = fs::metadata(path).and_then(|found| found.modified()).ok();
        if changed != self.changed {
            self.changed = changed;
            self.ranges = ranges(&fs::read_to_string(path).unwrap_or_default());
            self.known.clear();
            self.named.clear();
        }
    }

    fn owner(
        &mut self,
        id: u32,
        account: impl FnOnce(&str) -> Option<(u32, u32)>,
        has_name: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let inside = |range: &&Range| id.checked_sub(range.first).is_some_and(|at| at < range.count);
        let owner = &self.ranges.iter().find(inside)?.owner;
        if !self.known.contains_key(owner) {
            self.known.insert(owner.clone(), account(owner));
        }
        let found = self.known[owner].filter(|(uid, _)| *uid != 0)?;
        if self.named.len() > MOST_NAMED {
            self.named.clear();
        }
        let named = *self.named.entry(id).or_insert_with(|| has_name(id));
        (!named).then_some(found)
    }
}

/// Lines of OWNER:FIRST:COUNT; others are left out, as newuidmap(1) does.
fn ranges(text: &str) -> Vec<Range> {
    let range = |line: &str| {
        let mut fields = line.trim().split(':');
        let (owner, first, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Range {
            owner: owner.to_owned(),
            first: first.parse().ok()?,
            count: count.parse().ok()?,
        })
    };
    text.lines().filter_map(range).collect()
}

/// User and first group of a name, or of a number in its place.
fn account(name: &str) -> Option<(u32, u32)> {
    let text = CString::new(name).ok()?;
    let mut buffer = vec![0; ENTRY];
    // SAFETY: passwd is plain data; buffer and length agree.
    unsafe {
        let mut entry: libc::passwd = mem::zeroed();
        let mut found = std::ptr::null_mut();
        let (into, room) = (buffer.as_mut_ptr(), buffer.len());
        match name.parse() {
            Ok(uid) => libc::getpwuid_r(uid, &mut entry, into, room, &mut found),
            Err(_) => libc::getpwnam_r(text.as_ptr(), &mut entry, into, room, &mut found),
        };
        (!found.is_null()).then_some((entry.pw_uid, entry.pw_gid))
    }
}

/// Room for an entry's words.
const ENTRY: usize = 16 << 10;

fn user_has_name(uid: u32) -> bool {
    account(&uid.to_string()).is_some()
}

fn group_has_name(gid: u32) -> bool {
    let mut buffer = vec![0; ENTRY];
    // SAFETY: group is plain data; buffer and length agree. Where the buffer is too small there is such a group.
    unsafe {
        let mut entry: libc::group = mem::zeroed();
        let mut found = std::ptr::null_mut();
        let result = libc::getgrgid_r(gid, &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
        result == libc::ERANGE || !found.is_null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subordinate_user_counts_to_its_owner() {
        let mut table = Table {
            ranges: ranges("# a comment\nana:100000:65536\n1001:165536:10\nroot:300000:65536\nbroken:5\n"),
            ..Table::default()
        };
        let mut whose = |id| {
            let account = |name: &str| match name {
                "ana" => Some((1000, 100)),
                "1001" => Some((1001, 101)),
                "root" => Some((0, 0)),
                _ => None,
            };
            table.owner(id, account, |id| id == 123_456)
        };
        assert_eq!(whose(100_000), Some((1000, 100)));
        assert_eq!(whose(165_535), Some((1000, 100)));
        assert_eq!(whose(165_536), Some((1001, 101)), "owners may be numbers");
        assert_eq!(whose(165_546), None, "behind the range");
        assert_eq!(whose(99_999), None);
        assert_eq!(
            whose(123_456),
            None,
            "a user with a name, whom the range takes in by mistake"
        );
        assert_eq!(
            whose(300_001),
            None,
            "containers that root made are users of their own"
        );
    }

    #[test]
    fn who_is_unknown_is_nobody() {
        assert_eq!(account("no such user"), None);
        assert_eq!(account("root"), Some((0, 0)));
        assert_eq!(account("0"), Some((0, 0)));
        assert!(user_has_name(0) && group_has_name(0) && !user_has_name(4_294_967_000));
    }
}
