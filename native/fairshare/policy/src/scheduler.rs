//! The one interface of all schedulers.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::job::{Job, JobId};

/// Nanoseconds since any fixed moment; the caller's clock, never read here.
pub type Nanos = u64;

/// A queued request as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub job: JobId,
    /// Units of [`CostModel`](crate::cost::CostModel); 0 counts as 1.
    pub cost: u64,
    /// The caller's name for the request, handed back as it came.
    pub token: u64,
}

/// What a free worker is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Serve this request now, and call [`Scheduler::complete`] when it is done.
    Serve(Request),
    /// Nothing may be served before this time, unless a request arrives or completes earlier: ask then.
    WaitUntil(Nanos),
    /// No request is queued.
    Empty,
}

/// A request or change names a job that the scheduler was not told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownJob(pub JobId);

impl fmt::Display for UnknownJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} is not registered", self.0)
    }
}

impl std::error::Error for UnknownJob {}

/// What a job used of this server so far, for the exchange between servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    pub job: Job,
    /// Cost of the requests handed to workers since the job was added.
    pub served: u64,
    /// Cost of the requests that wait.
    pub queued: u64,
}

/// Fraction of this server's service for each job, as [`crate::global`] computes it.
pub type LocalShares = HashMap<JobId, f64>;

/// Decides which request goes next. Deterministic for a seed and a sequence of calls.
///
/// One scheduler per server, behind one lock; all workers ask it. Within a job requests go in the
/// order they came. Time never runs backwards between calls.
pub trait Scheduler: Send {
    /// Registers a job, or changes size, priority or owner of a known one (its queue stays).
    fn add_job(&mut self, job: Job);

    /// Forgets a job. Returns its queued requests, oldest first, for the caller to answer.
    fn remove_job(&mut self, id: JobId) -> Vec<Request>;

    /// Queues a request.
    fn enqueue(&mut self, job: JobId, cost: u64, token: u64, now: Nanos) -> Result<(), UnknownJob>;

    /// The next request for a free worker.
    fn next(&mut self, now: Nanos) -> Next;

    /// Says that a request which [`Scheduler::next`] handed out is done. A removed job is no error.
    fn complete(&mut self, _job: JobId, _now: Nanos) {}

    /// Charges a job for more than its requests said: what was served took longer than they let expect. Counts for
    /// the order alone, not as service. Schedulers that draw or allot do not know it.
    fn surcharge(&mut self, _job: JobId, _cost: u64) {}

    /// Number of queued requests.
    fn backlog(&self) -> usize;

    /// Number of queued requests of one job; 0 for an unknown one.
    fn backlog_of(&self, job: JobId) -> usize;

    /// What each registered job used, in the order of the ids.
    fn usage(&self) -> Vec<Usage>;

    /// Global fairness: weighs jobs by these shares instead of the local ones; None goes back.
    /// A job that the map does not name keeps its local share.
    fn set_local_shares(&mut self, shares: Option<&LocalShares>);

    /// All queued requests of a scheduler that ends here, in the order they came.
    fn take_all(self: Box<Self>) -> Vec<Request>;
}

/// The schedulers that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedulerKind {
    /// Hierarchical start-time fair queueing: deterministic, least variance. The default.
    Stride,
    /// Statistical tokens (ThemisIO): a weighted draw over the jobs that have requests.
    Token,
    /// GIFT with what its fairness needs: redraws, and new jobs at once.
    Gift,
    /// GIFT as the ThemisIO comparison has it.
    GiftPublished,
    /// Token buckets that share spare bandwidth.
    Tbf,
    /// Token buckets under a fixed rate, as the ThemisIO comparison has them.
    TbfPublished,
    /// First in, first out, whatever the policy.
    Fifo,
}

impl SchedulerKind {
    pub const ALL: [(&'static str, SchedulerKind); 7] = [
        ("stride", SchedulerKind::Stride),
        ("token", SchedulerKind::Token),
        ("gift", SchedulerKind::Gift),
        ("gift-published", SchedulerKind::GiftPublished),
        ("tbf", SchedulerKind::Tbf),
        ("tbf-published", SchedulerKind::TbfPublished),
        ("fifo", SchedulerKind::Fifo),
    ];

    /// Whether this is a variant as published, for the comparison with the ThemisIO paper.
    pub fn is_published(self) -> bool {
        matches!(self, SchedulerKind::GiftPublished | SchedulerKind::TbfPublished)
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].0)
    }
}

impl FromStr for SchedulerKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let names = Self::ALL.map(|(known, _)| known).join(", ");
            format!("{name:?} is not a scheduler: write one of {names}")
        })
    }
}

/// Parameters of the schedulers. Each one's doc says which of them reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Token, GIFT: where the random numbers start.
    pub seed: u64,
    /// Stride, in cost units: how far a job that was momentarily without requests may catch up. More
    /// evens out jitter, less keeps a job that returns from idleness from a burst.
    pub credit: u64,
    /// GIFT: time between two allocations. ThemisIO's comparison uses 0.5 s.
    pub epoch: Nanos,
    /// GIFT as published: what a worker loses when its draw hits a job without requests.
    pub wasted_draw: Nanos,
    /// TBF, in cost units per second: what the buckets fill with in all. As published it is a cap.
    pub rate: f64,
    /// TBF, in cost units: size of a job's bucket.
    pub bucket: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            seed: 1,
            credit: 16 << 20, // as much as the bucket of TBF: one allowance for all who have one
            epoch: 500_000_000,
            wasted_draw: 1_000,
            rate: 10e9,
            bucket: 16 << 20,
        }
    }
}
