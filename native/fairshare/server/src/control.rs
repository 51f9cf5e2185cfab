//! What an administrator changes while the server runs: policy and rate, and jobs that are sent away.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::call::Call;
use crate::config::Config;
use crate::creds;
use crate::errno::{Errno, Result};
use crate::jobs::{Described, Proof};
use crate::outcome::Outcome;
use crate::safe::own;
use crate::server::Server;

/// Longest time for which a job is sent away (seconds).
const LONGEST: i64 = 30 * 86400;

/// Only the server's own user and root, on this machine.
pub fn trusted(call: &Call<'_>) -> bool {
    call.session.local && own(call.session.creds.uid)
}

/// A sentence for whoever asked; with a negative result, why it was not done.
fn said(call: &Call<'_>, result: i64, text: &str) -> Result<Outcome> {
    Ok(Outcome {
        result,
        ..call.tell(text.as_bytes())?
    })
}

/// End a job's connections, and let it in no more for `offset` seconds.
pub fn send_away(call: &Call<'_>) -> Result<Outcome> {
    if !trusted(call) {
        return Err(Errno(libc::EPERM));
    }
    let request = call.request;
    let name = call.area.copy(request.paths_len(), request.size as usize)?;
    let name = String::from_utf8(name).map_err(|_| Errno(libc::EINVAL))?;
    let user = (request.uid != u32::MAX).then_some(request.uid);
    let seconds = request.offset.clamp(0, LONGEST);
    let server = call.server;
    server
        .sent_away
        .add(&name, user, Instant::now() + Duration::from_secs(seconds as u64));
    let ended = server.end_job(&name, user, call.session.id);
    server.log.tell(
        "sent away",
        json!({"by": call.session.creds.uid, "job": name, "user": user, "seconds": seconds, "connections": ended}),
    );
    Ok(Outcome {
        value: ended as u64,
        ..Outcome::default()
    })
}

/// A process of the client's own belongs to its job from now on, as long as the session lasts.
pub fn join(call: &Call<'_>) -> Result<Outcome> {
    let session = call.session;
    let process = u32::try_from(call.request.offset).map_err(|_| Errno(libc::EINVAL))?;
    let owner = fs::metadata(format!("/proc/{process}")).map_err(|_| Errno(libc::ESRCH))?;
    if !session.local || owner.uid() != session.creds.uid {
        return Err(Errno(libc::EPERM));
    }
    let job = Described {
        name: session.entry.name.clone(),
        job: *session.entry.job.lock().expect("no panics under this lock"),
        proof: Proof::Own, // what this session could prove counts
    };
    call.server
        .members
        .join(process, session.id, session.creds.uid, job);
    Ok(Outcome::default())
}

pub fn reload(call: &Call<'_>) -> Result<Outcome> {
    if !trusted(call) {
        return Err(Errno(libc::EPERM));
    }
    match creds::as_server(|| call.server.reload(&format!("user {}", call.session.creds.uid))) {
        Ok(text) => said(call, 0, &text),
        Err(text) => said(call, -i64::from(libc::EINVAL), &text),
    }
}

impl Server {
    /// Read the options anew, from the file that `--config` names, and go on by those that can change. Says what
    /// changed. Where something is wrong nothing is changed, and the error says what.
    pub fn reload(&self, by: &str) -> std::result::Result<String, String> {
        let outcome = self.try_reload();
        let (event, text) = match &outcome {
            Ok(text) => ("reloaded", text),
            Err(text) => ("not reloaded", text),
        };
        self.log.tell(event, json!({"by": by, "what": text}));
        outcome
    }

    fn try_reload(&self) -> std::result::Result<String, String> {
        let fresh = Config::parse(self.config.arguments.iter().cloned())?;
        self.log.reopen()?;
        let mut live = self.live.write().expect("no panics under this lock");
        let mut changed = Vec::new();
        let mut note = |what: &str, before: String, after: String| {
            if before != after {
                changed.push(format!("{what} {before} -> {after}"));
            }
        };
        let (fixed, fresh_live) = (self.config.fixed_that_differ(&fresh), &fresh.live);
        note("policy", live.policy_name.clone(), fresh_live.policy_name.clone());
        note(
            "scheduler",
            live.scheduler.to_string(),
            fresh_live.scheduler.to_string(),
        );
        note("rate", live.rate.to_string(), fresh_live.rate.to_string());
        note("jobs", live.jobs.name().into(), fresh_live.jobs.name().into());
        if !changed.is_empty() {
            let storage = (fresh_live.rate, self.config.cost(fresh_live.rate));
            self.queue
                .go_on_by(fresh_live.scheduler, &fresh.policy, &fresh.settings, storage);
            *live = fresh.live.clone();
        }
        let mut text = if changed.is_empty() {
            "nothing changed".to_owned()
        } else {
            changed.join(", ")
        };
        if !fixed.is_empty() {
            text += &format!("; a restart is needed for {}", fixed.join(", "));
        }
        Ok(text)
    }

    /// End all connections of a job's sessions, but for the one that asks for it. How many there were.
    pub(crate) fn end_job(&self, name: &str, user: Option<u32>, but: u64) -> usize {
        let of_job: Vec<_> = self
            .all_connections()
            .into_iter()
            .filter(|connection| {
                connection.session.get().is_some_and(|session| {
                    let owner = session.entry.job.lock().expect("no panics under this lock").user;
                    session.entry.name == name && user.is_none_or(|user| user == owner) && session.id != but
                })
            })
            .collect();
        for connection in &of_job {
            self.end(connection);
        }
        of_job.len()
    }

    /// Sessions there are, for whoever counts.
    pub fn connected(&self) -> usize {
        let with_session =
            |connection: &Arc<crate::connection::Connection>| connection.session.get().is_some();
        self.all_connections().iter().filter(|c| with_session(c)).count()
    }

    pub fn counted(&self) -> (u64, u64) {
        let counts = &self.log.counts;
        (
            counts.joined.load(Ordering::Relaxed),
            counts.refused.load(Ordering::Relaxed),
        )
    }
}
