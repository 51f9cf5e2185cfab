//! Requests that begin inside the server: those of its own FUSE mount. They go through the same scheduler, with
//! an identity that the kernel vouches for.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use wire::{Op, Request};

use crate::caches;
use crate::creds::{self, Creds};
use crate::identity::local_job;
use crate::outcome::{Outcome, Then};
use crate::queue::{Pending, Place};
use crate::server::Server;
use crate::session::Session;

/// A process that has been silent for this time is forgotten (and its groups read anew).
const IDLE: Duration = Duration::from_secs(30);
/// And after this time where there are more than so many: a user who starts process after process would have all of
/// them remembered.
const IDLE_IN_A_CROWD: Duration = Duration::from_secs(1);
const CROWD: usize = 4096;
/// Between two looks through all of them: one for each new process would keep the kernel's questions waiting.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Ids of sessions that no connection has.
const FIRST_ID: u64 = 1 << 60;

/// After this time a process's groups and job are read anew: its number can be another's of the same user by now,
/// who would go on in a job that has ended.
const RENEWAL: Duration = Duration::from_secs(5);

/// Longest payload that is not counted to its user: there are no more of them than threads.
const WITHOUT_COUNT: usize = 4096;

/// User, group, process.
pub type Process = (u32, u32, u32);

struct Insider {
    session: Arc<Session>,
    /// When it asked last, and when its groups and job were read.
    asked: Instant,
    read: Instant,
}

#[derive(Default)]
struct Known {
    sessions: HashMap<Process, Insider>,
    /// Whose processes have others by now, until their requests are answered.
    former: Vec<Arc<Session>>,
    looked: Option<Instant>,
}

/// What a mount shows: the files of the server in this process, or of one at the end of a connection (`link`).
pub trait Files: Send + Sync {
    /// Carry out a request in the name of a process; `payload` is what follows it on the wire. `then` is called once, by
    /// any thread.
    fn ask(&self, by: Process, request: Request, payload: Vec<u8>, then: Then);

    fn close(&self, handle: u64);

    /// The socket by which programs on this machine reach the server themselves; empty where there is none.
    fn socket(&self) -> Vec<u8>;
}

/// The files of this process's server.
pub struct Inside {
    server: Arc<Server>,
    insiders: Insiders,
}

impl Inside {
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            insiders: Insiders::default(),
        }
    }
}

impl Files for Inside {
    fn ask(&self, by: Process, request: Request, payload: Vec<u8>, then: Then) {
        let session = self.insiders.session(&self.server, by);
        self.server.submit(session, request, payload, then);
    }

    fn close(&self, handle: u64) {
        self.server.handles.remove(handle);
    }

    fn socket(&self) -> Vec<u8> {
        let path = &self.server.door.path;
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        whole.into_os_string().into_encoded_bytes()
    }
}

#[derive(Default)]
pub struct Insiders {
    known: Mutex<Known>,
    next: AtomicU64,
}

impl Known {
    /// Remember a process's session. One that it had is left when its requests are answered.
    fn put(&mut self, process: Process, session: &Arc<Session>, now: Instant) {
        let insider = Insider {
            session: Arc::clone(session),
            asked: now,
            read: now,
        };
        let before = self.sessions.insert(process, insider);
        self.former.extend(before.map(|insider| insider.session));
    }

    /// Forget who has been silent, and tell `gone`. Who waits for an answer is not silent: a job that its last session
    /// leaves takes its requests along.
    fn tidy(&mut self, now: Instant, mut gone: impl FnMut(&Session)) {
        if self
            .looked
            .is_some_and(|looked| now.duration_since(looked) < BETWEEN_LOOKS)
        {
            return;
        }
        self.looked = Some(now);
        let idle = if self.sessions.len() > CROWD {
            IDLE_IN_A_CROWD
        } else {
            IDLE
        };
        self.sessions.retain(|_, Insider { session, asked, .. }| {
            let stays = now.duration_since(*asked) < idle || Arc::strong_count(session) > 1;
            if !stays {
                gone(session);
            }
            stays
        });
        self.former.retain(|session| {
            let stays = Arc::strong_count(session) > 1;
            if !stays {
                gone(session);
            }
            stays
        });
        if self.sessions.capacity() > 4 * CROWD.max(self.sessions.len()) {
            self.sessions.shrink_to_fit();
        }
    }
}

impl Insiders {
    /// The session of a process: user and group as the kernel sent them, its other groups and its job as
    /// /proc says.
    pub fn session(&self, server: &Server, (uid, gid, pid): Process) -> Arc<Session> {
        let mut known = self.known.lock().expect("no panics under this lock");
        let now = Instant::now();
        if let Some(insider) = known.sessions.get_mut(&(uid, gid, pid)) {
            insider.asked = now;
            if now.duration_since(insider.read) < RENEWAL {
                return Arc::clone(&insider.session);
            }
        }
        known.tidy(now, |session| server.leave_job(session));
        // This thread may have a client's rights since it carried out a request.
        let (creds, local) = creds::as_server(|| {
            let groups = groups_of(uid, gid, pid);
            let creds = Creds { uid, gid, groups };
            let local = local_job(&creds, pid as i32, &server.slurm);
            (creds, local)
        });
        let described = match server.members.job_of(uid, pid) {
            // A ticket may say more of the same Slurm job, never put the process into another.
            Some(member) if member.name == local.name || !local.name.starts_with("slurm-") => member,
            _ => local,
        };
        if let Some(insider) = known.sessions.get_mut(&(uid, gid, pid)) {
            let session = &insider.session;
            if session.creds == creds && session.entry.name == described.name {
                insider.read = now;
                return Arc::clone(session);
            }
        }
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed);
        let entry = server.join_job(&described);
        server.log.joined(
            json!({"over": "mount", "uid": uid, "gid": gid, "pid": pid, "job": described.name,
                "size": described.job.size, "user": described.job.user}),
        );
        let session = Arc::new(Session {
            inside: true,
            cache: Some(caches::OWN),
            ..Session::new(id, creds, described.job.id, entry)
        });
        known.put((uid, gid, pid), &session, now);
        session
    }
}

/// A process's groups. None where its number is another user's by now: who asks and ends has his question answered
/// with the groups of whoever got the number.
fn groups_of(uid: u32, gid: u32, pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    groups_in(&status, uid, gid)
}

/// What /proc/PID/status says, where it says it of a process that reaches files as this user and group.
fn groups_in(status: &str, uid: u32, gid: u32) -> Vec<u32> {
    let numbers = |name: &str| -> Vec<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let words = line.unwrap_or("").split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let for_files = |name| numbers(name).get(3).copied();
    if (for_files("Uid:"), for_files("Gid:")) != (Some(uid), Some(gid)) {
        return Vec::new();
    }
    numbers("Groups:")
}

impl Server {
    /// Queue a request; `payload` is what follows it on the wire. `then` is called by a worker.
    pub fn submit(&self, session: Arc<Session>, request: Request, payload: Vec<u8>, then: Then) {
        let (job, op) = (session.job, request.op);
        let user = session.user();
        if self.sent_away.left(&session.entry.name, user).is_some() {
            return then(&Outcome::of(-i64::from(libc::EACCES)), &[]);
        }
        // Each thread of a user can have a write wait here.
        let held = (payload.len() > WITHOUT_COUNT).then(|| {
            let (budget, size) = (&self.budgets.memory, payload.len() as u64);
            budget.take(session.creds.uid, size)
        });
        if matches!(held, Some(None)) {
            return then(&Outcome::of(-i64::from(libc::ENOMEM)), &[]);
        }
        let held = held.flatten();
        let pending = Pending {
            session,
            request,
            place: Place::Inside { payload, then, held },
        };
        if pending.is_unlock() {
            self.serve(pending);
            return;
        }
        self.enqueue(job, vec![pending]);
        if self.carry_out_here(op) && self.arrivals.came() {
            self.nudge();
        }
    }

    /// Carry out the request of kind `op` that this thread has just queued, where nothing else waits and handing it to a
    /// worker would cost more than the request itself. Returns whether requests are left for the workers.
    fn carry_out_here(&self, op: Op) -> bool {
        let short = !matches!(op, Op::Read | Op::Write | Op::Fsync | Op::Allocate | Op::Truncate);
        if !short || !creds::has_laid_down() || !self.brevity.is_expected() {
            return true;
        }
        let Some((pending, ticked)) = self.queue.pop_for_bringer() else {
            return true;
        };
        let began = self.queue.now();
        let time = self.serve(*pending);
        self.brevity.took(self.queue.now() - began);
        self.queue.done(&ticked, time);
        self.queue.backlog() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::tests::session;

    const STATUS: &str = "Name:\tx\nUid:\t5\t6\t7\t8\nGid:\t1\t2\t3\t4\nGroups:\t4 27 1000 \n";

    #[test]
    fn groups_are_those_of_who_asked() {
        assert_eq!(groups_in(STATUS, 8, 4), [4, 27, 1000]);
        assert_eq!(
            groups_in(STATUS, 9, 4),
            [0; 0],
            "the number is another user's by now"
        );
        assert_eq!(groups_in(STATUS, 8, 1), [0; 0]);
        assert_eq!(groups_in("", 8, 4), [0; 0], "the process has ended");
    }

    fn known(count: u32, began: Instant) -> Known {
        let (session, mut known) = (session(), Known::default());
        for pid in 0..count {
            known.put((1, 1, pid), &Arc::new(again(&session)), began);
        }
        known
    }

    fn again(session: &Session) -> Session {
        let (creds, entry) = (session.creds.clone(), Arc::clone(&session.entry));
        Session::new(session.id, creds, session.job, entry)
    }

    #[test]
    fn who_waits_for_an_answer_is_not_forgotten() {
        let began = Instant::now();
        let mut known = known(3, began);
        let waits = Arc::clone(&known.sessions[&(1, 1, 2)].session);
        let mut gone = 0;
        known.tidy(began + IDLE * 2, |_| gone += 1);
        assert_eq!((gone, known.sessions.len()), (2, 1));
        drop(waits);
        known.tidy(began + IDLE * 3, |_| gone += 1);
        assert_eq!((gone, known.sessions.len()), (3, 0));
    }

    #[test]
    fn the_session_that_a_process_had_is_left_when_its_requests_are_answered() {
        let began = Instant::now();
        let mut known = known(1, began);
        let before = Arc::clone(&known.sessions[&(1, 1, 0)].session);
        known.put((1, 1, 0), &Arc::new(again(&before)), began);
        let mut gone = 0;
        known.tidy(began, |_| gone += 1);
        assert_eq!(gone, 0, "it waits for an answer");
        drop(before);
        known.tidy(began + BETWEEN_LOOKS, |_| gone += 1);
        assert_eq!((gone, known.sessions.len()), (1, 1));
    }

    #[test]
    fn process_after_process_is_neither_remembered_nor_looked_through_each_time() {
        let began = Instant::now();
        let mut known = known(CROWD as u32 + 1, began);
        let mut gone = 0;
        known.tidy(began, |_| gone += 1);
        known.tidy(began + BETWEEN_LOOKS / 2, |_| gone += 1);
        assert_eq!((gone, known.looked), (0, Some(began)), "looked at once a second");
        known.tidy(began + IDLE_IN_A_CROWD * 2, |_| gone += 1);
        assert_eq!(gone, CROWD + 1);
    }
}
