//! A client that has said who it is.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

use crate::budget::Held;
use crate::creds::Creds;
use crate::jobs::Entry;
use crate::segment::Segment;
use crate::writes::Writes;

pub struct Session {
    /// The number of its connection.
    pub id: u64,
    pub creds: Creds,
    pub job: policy::JobId,
    pub entry: Arc<Entry>,
    /// Over the Unix socket of this machine, whose kernel says who asks.
    pub local: bool,
    /// Of the server's own mount: it uses handles for the kernel, which answers for who has them.
    pub inside: bool,
    /// The number of the mount that asks, which keeps something of files ([`crate::caches`]).
    pub cache: Option<u64>,
    pub shared: Option<Shared>,
    /// Its writes that workers have taken.
    pub writes: Writes,
    /// Its user's part of what runs out, which goes with it.
    #[allow(dead_code, reason = "held, not read")]
    pub held: Vec<Held>,
}

impl Session {
    /// One of a process that no descriptors can be passed to, and that holds nothing yet.
    pub fn new(id: u64, creds: Creds, job: policy::JobId, entry: Arc<Entry>) -> Self {
        Self {
            id,
            creds,
            job,
            entry,
            local: false,
            inside: false,
            cache: None,
            shared: None,
            writes: Writes::default(),
            held: Vec::new(),
        }
    }

    /// To whom its job is accounted.
    pub fn user(&self) -> u32 {
        self.entry.job.lock().expect("no panics under this lock").user
    }
}

/// Requests in shared memory.
pub struct Shared {
    pub segment: Segment,
    /// Slots that are being worked on, one bit each: what the client says of them meanwhile is ignored.
    pub busy: AtomicU32,
    /// Whether the workers look at the segment by themselves; changed by [`crate::hot`] alone.
    pub hot: AtomicBool,
    /// Held while posted requests are taken and queued.
    pub collecting: Mutex<()>,
}

impl Shared {
    pub fn new(segment: Segment) -> Self {
        Self {
            segment,
            busy: AtomicU32::new(0),
            hot: AtomicBool::new(false),
            collecting: Mutex::default(),
        }
    }
}
