//! Processes that belong to a job which a ticket says: those that a session named, and what they start. So the server's own
//! mount knows whose requests these are.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, MutexGuard};

use crate::jobs::Described;

/// Generations that are looked through.
const MOST: usize = 128;

struct Member {
    session: u64,
    uid: u32,
    job: Described,
}

#[derive(Default)]
pub struct Members(Mutex<HashMap<u32, Member>>);

impl Members {
    /// A session says that a process of its user belongs to its job, as long as the session is there.
    pub fn join(&self, process: u32, session: u64, uid: u32, job: Described) {
        self.table().insert(process, Member { session, uid, job });
    }

    pub fn session_ended(&self, session: u64) {
        self.table().retain(|_, member| member.session != session);
    }

    /// The job of a user's process or thread, if it or one that it descends from belongs to one.
    pub fn job_of(&self, uid: u32, process: u32) -> Option<Described> {
        let table = self.table();
        if table.is_empty() {
            return None;
        }
        let mut at = process;
        for _ in 0..MOST {
            let status = fs::read_to_string(format!("/proc/{at}/status")).ok()?;
            let number = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|rest| rest.trim().parse::<u32>().ok())
            };
            let member = number("Tgid:").and_then(|process| table.get(&process));
            if let Some(member) = member.filter(|member| member.uid == uid) {
                return Some(member.job.clone());
            }
            at = number("PPid:").filter(|parent| *parent > 1)?;
        }
        None
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u32, Member>> {
        self.0.lock().expect("no panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use policy::Job;

    use super::*;
    use crate::jobs::Proof;

    #[test]
    fn what_a_member_starts_belongs_to_its_job_as_long_as_the_session_lasts() {
        let (members, own) = (Members::default(), std::process::id());
        assert!(members.job_of(7, own).is_none());
        members.join(own, 5, 7, Described::new(7, "climate", Job::new, Proof::Own));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let name = |uid, process| members.job_of(uid, process).map(|job| job.name);
        assert_eq!(name(7, own).as_deref(), Some("climate"));
        assert_eq!(name(7, child.id()).as_deref(), Some("climate"));
        assert_eq!(name(8, child.id()), None, "another user's process");
        members.session_ended(5);
        assert_eq!(name(7, child.id()), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
