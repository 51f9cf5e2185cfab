//! What the server says of itself, and the tickets that it signs.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use policy::JobId;
use serde_json::{json, Value};
use wire::{ticket, Ticket, TICKET_BYTES};

use crate::call::Call;
use crate::control;
use crate::errno::{Errno, Result};
use crate::handles::random;
use crate::identity::now;
use crate::outcome::Outcome;
use crate::server::Server;

/// Jobs, what they are entitled to now, and what they have moved: JSON, in pieces of the reply's room
/// (offset in `offset`).
pub fn status(call: &Call<'_>) -> Result<Outcome> {
    let text = describe(call.server).to_string();
    let start = (call.request.offset.max(0) as usize).min(text.len());
    let room = call.area.capacity();
    let end = text.len().min(start + room);
    Ok(Outcome {
        value: text.len() as u64,
        ..call.give(&text.as_bytes()[start..end])?
    })
}

pub fn describe(server: &Server) -> Value {
    let listed = server.jobs.list();
    let active: Vec<_> = listed
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(entry, _)| *entry.job.lock().expect("plain"))
        .collect();
    let shares = policy::shares(&server.queue.policy(), &active);
    let share_of: HashMap<JobId, f64> = active.iter().map(|job| job.id).zip(shares).collect();
    let usage = server.queue.usage();
    let served: HashMap<JobId, u64> = usage.iter().map(|used| (used.job.id, used.served)).collect();
    let jobs: Vec<Value> = listed
        .iter()
        .map(|(entry, sessions)| {
            let job = *entry.job.lock().expect("plain");
            json!({
                "job": entry.name, "user": job.user, "group": job.group, "size": job.size,
                "priority": job.priority, "clients": sessions, "share": share_of.get(&job.id),
                "bytes_read": entry.counters.bytes_read.load(Ordering::Relaxed),
                "bytes_written": entry.counters.bytes_written.load(Ordering::Relaxed),
                "served": served.get(&job.id), "operations": entry.counters.operations.load(Ordering::Relaxed),
            })
        })
        .collect();
    let live = server.live.read().expect("no panics under this lock");
    json!({
        "server": format!("{:016x}", server.id),
        "jobs_of": live.jobs.name(),
        "policy": live.policy_name,
        "scheduler": live.scheduler.to_string(),
        "rate": live.rate,
        "mount": server.config.mount.as_ref().and_then(|path| std::path::absolute(path).ok()),
        "seconds": server.queue.now() as f64 / 1e9,
        "open_files": server.handles.count(),
        "jobs": jobs,
    })
}

/// How long a ticket is valid at most that a user had signed (seconds).
const OWN_LASTS: u64 = 7 * 86400;

/// Sign a ticket. The server's own user and root may have any; others only one for themselves, of size 1.
pub fn ticket(call: &Call<'_>) -> Result<Outcome> {
    let creds = &call.session.creds;
    let bytes: [u8; TICKET_BYTES] = call
        .area
        .copy(call.request.paths_len(), TICKET_BYTES)?
        .try_into()
        .expect("as long as asked for");
    let mut ticket = Ticket::parse(&bytes).map_err(|_| Errno(libc::EINVAL))?;
    let trusted = control::trusted(call);
    // Over TCP a ticket is all that says who somebody is: each word of it has to be the kernel's.
    let own = (ticket.uid, ticket.gid) == (creds.uid, creds.gid)
        && (ticket.user, ticket.group) == (creds.uid, creds.gid)
        && (ticket.size, ticket.priority) == (1, 1)
        && !ticket.job.starts_with("slurm-");
    if !call.session.local || !(trusted || own) {
        return Err(Errno(libc::EPERM));
    }
    if trusted {
        ticket.by = ticket::ADMINISTRATOR;
    } else {
        ticket.by = ticket::USER;
        ticket.expires = ticket.expires.min(now() + OWN_LASTS);
    }
    ticket.nonce = random()?;
    let mut answer = ticket.to_bytes().to_vec();
    answer.extend_from_slice(&call.server.key.secret(&ticket));
    let outcome = call.give(&answer)?;
    call.server.log.tell(
        "ticket",
        json!({"by": creds.uid, "uid": ticket.uid, "gid": ticket.gid, "user": ticket.user, "job": ticket.job,
               "size": ticket.size, "priority": ticket.priority, "expires": ticket.expires}),
    );
    Ok(outcome)
}
