//! Requests that begin inside the server: those of the FUSE mount. They go through the same scheduler, with
//! an identity that the kernel vouches for.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use wire::Request;

use crate::creds::Creds;
use crate::identity::local_job;
use crate::outcome::{Outcome, Then};
use crate::queue::{Pending, Place};
use crate::server::Server;
use crate::session::Session;

/// A process that has been silent for this time is forgotten (and its groups read anew).
const IDLE: Duration = Duration::from_secs(30);
/// Ids of sessions that no connection has.
const FIRST_ID: u64 = 1 << 60;

/// User, group, process.
type Process = (u32, u32, u32);

#[derive(Default)]
pub struct Insiders {
    sessions: Mutex<HashMap<Process, (Arc<Session>, Instant)>>,
    next: AtomicU64,
}

impl Insiders {
    /// The session of a process: user and group as the kernel sent them, its other groups and its job as
    /// /proc says.
    pub fn session(&self, server: &Server, uid: u32, gid: u32, pid: u32) -> Arc<Session> {
        let mut sessions = self.sessions.lock().expect("no panics under this lock");
        let now = Instant::now();
        if let Some((session, last)) = sessions.get_mut(&(uid, gid, pid)) {
            *last = now;
            return Arc::clone(session);
        }
        sessions.retain(|_, (session, last)| {
            let stays = now.duration_since(*last) < IDLE;
            if !stays {
                server.leave_job(session);
            }
            stays
        });
        let creds = Creds {
            uid,
            gid,
            groups: groups_of(pid),
        };
        let described = local_job(&creds, pid as i32, &server.slurm);
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed);
        let entry = server.join_job(&described);
        server
            .log
            .joined(json!({"over": "mount", "uid": uid, "gid": gid, "pid": pid, "job": described.name}));
        let session = Arc::new(Session {
            id,
            creds,
            job: described.job.id,
            entry,
            local: false,
            inside: true,
            shared: None,
            objects: AtomicBool::new(false),
            held: Vec::new(),
        });
        sessions.insert((uid, gid, pid), (Arc::clone(&session), now));
        session
    }
}

fn groups_of(pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Groups:"))
        .unwrap_or("");
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

impl Server {
    /// Queue a request; `payload` is what follows it on the wire. `then` is called by a worker.
    pub fn submit(&self, session: Arc<Session>, request: Request, payload: Vec<u8>, then: Then) {
        let job = session.job;
        if self
            .sent_away
            .left(&session.entry.name, session.creds.uid)
            .is_some()
        {
            return then(&Outcome::of(-i64::from(libc::EACCES)), &[]);
        }
        self.enqueue(
            job,
            vec![Pending {
                session,
                request,
                place: Place::Inside { payload, then },
            }],
        );
        self.nudge();
    }
}
