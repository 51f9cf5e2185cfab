//! What jobs are charged for the time that their requests took: those that take long and say little by their bytes
//! (allocating, removing large files, waiting for a device) cost what others could have moved meanwhile.

use std::collections::HashMap;

use policy::{CostModel, Job, JobId, Nanos};

/// How much longer a request may take than what it costs would take in large pieces.
const EXPECTED: u64 = 2;

pub struct Charges {
    speeds: Speeds,
    debts: HashMap<JobId, Debt>,
}

/// What a worker moves in a time: in large pieces, and in small ones, whose cost is mostly that of an operation. Where a
/// disk has to seek the small ones are far slower, and say nothing of what others could have moved; where nobody asks
/// for large ones they are all that is known.
struct Speeds {
    small: Speed,
    large: Speed,
    /// Bytes per second: no more than that is served, or costs count on no more.
    most: u64,
}

struct Speed {
    cost: f64,
    time: f64,
    /// When it was seen last.
    at: Nanos,
}

/// Pieces of as many bytes say how fast the storage moves data, smaller ones how fast it is asked.
const LARGE: u64 = 64 << 10;

/// Of two speeds the one that was seen so much longer ago counts no more.
const OLD: Nanos = 1_000_000_000;

impl Speed {
    /// Before anything was seen: 32 KiB in 0.1 ms.
    const UNKNOWN: Self = Self {
        cost: (32 << 10) as f64,
        time: 1e5,
        at: 0,
    };
    const FADES: f64 = 0.99;

    /// In cost per nanosecond.
    fn per_nano(&self) -> f64 {
        self.cost / self.time
    }
}

impl Speeds {
    fn worth(&self, took: Nanos) -> u64 {
        let last = self.small.at.max(self.large.at);
        let now = [&self.small, &self.large].into_iter();
        let now = now.filter(|speed| speed.at + OLD >= last);
        let fastest = now.map(Speed::per_nano).fold(0.0, f64::max);
        (took as f64 * fastest.min(self.most as f64 / 1e9)) as u64
    }
}

fn most(rate: u64) -> u64 {
    match rate {
        0 => CostModel::FASTEST,
        rate => rate.min(CostModel::FASTEST),
    }
}

/// What a job was charged. It outlasts the job's sessions: who leaves and comes back has it still.
struct Debt {
    user: u32,
    cost: u64,
    since: Nanos,
    gone: bool,
}

impl Debt {
    /// What is left of it, as others could have moved the rest by now.
    fn left(&self, speeds: &Speeds, now: Nanos) -> u64 {
        self.cost
            .saturating_sub(speeds.worth(now.saturating_sub(self.since)))
    }
}

impl Charges {
    /// `rate`: no more is served; 0: no limit.
    pub fn new(rate: u64) -> Self {
        Self {
            speeds: Speeds {
                small: Speed::UNKNOWN,
                large: Speed::UNKNOWN,
                most: most(rate),
            },
            debts: HashMap::new(),
        }
    }

    pub fn set_rate(&mut self, rate: u64) {
        self.speeds.most = most(rate);
    }

    /// So many bytes were moved, which cost so much, in a time.
    pub fn saw(&mut self, bytes: u64, cost: u64, took: Nanos, now: Nanos) {
        let Speeds { small, large, .. } = &mut self.speeds;
        let speed = if bytes >= LARGE { large } else { small };
        *speed = Speed {
            cost: speed.cost * Speed::FADES + cost as f64,
            time: speed.time * Speed::FADES + took.max(1) as f64,
            at: now,
        };
    }

    /// What a request of this cost, which took so long, cost others beside it.
    pub fn excess(&self, cost: u64, took: Nanos) -> u64 {
        self.speeds
            .worth(took)
            .saturating_sub(cost.saturating_mul(EXPECTED))
    }

    /// Remember that a user's job is charged for that. `gone`: it has left meanwhile.
    pub fn charge(&mut self, job: JobId, user: u32, more: u64, gone: bool, now: Nanos) {
        let left = self
            .debts
            .get(&job)
            .map_or(0, |debt| debt.left(&self.speeds, now));
        let (cost, since) = (left.saturating_add(more), now);
        self.debts.insert(
            job,
            Debt {
                user,
                cost,
                since,
                gone,
            },
        );
    }

    /// A job comes: what it still owes. Where shares are users' (`of_users`), also what its user's jobs owed that have
    /// left: else who takes another name for each request would owe nothing.
    pub fn comes(&mut self, job: &Job, of_users: bool, now: Nanos) -> u64 {
        let mine =
            |id: &JobId, debt: &Debt| debt.gone && (*id == job.id || of_users && debt.user == job.user);
        let mut owed = 0;
        self.debts.retain(|id, debt| {
            let found = mine(id, debt);
            owed += if found { debt.left(&self.speeds, now) } else { 0 };
            !found
        });
        if owed > 0 {
            let (user, gone) = (job.user, false);
            self.debts.insert(
                job.id,
                Debt {
                    user,
                    cost: owed,
                    since: now,
                    gone,
                },
            );
        }
        owed
    }

    /// A job's last session has left.
    pub fn leaves(&mut self, job: JobId, now: Nanos) {
        self.debts.retain(|id, debt| {
            debt.gone |= *id == job;
            !debt.gone || debt.left(&self.speeds, now) > 0
        });
    }
}
