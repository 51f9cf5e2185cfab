//! What jobs are charged for the time that their requests took: those that take long and say little by their bytes
//! (allocating, removing large files, waiting for a device) cost what others could have moved meanwhile.

use std::collections::HashMap;

use policy::{Job, JobId, Nanos};

/// How much longer a request may take than what it costs would take in large pieces.
const EXPECTED: u64 = 2;

pub struct Charges {
    speed: Speed,
    debts: HashMap<JobId, Debt>,
}

/// What a worker moves in a time, in large pieces.
struct Speed {
    cost: f64,
    time: f64,
}

impl Speed {
    /// Before anything was seen: 32 KiB in 0.1 ms.
    const UNKNOWN: Self = Self {
        cost: (32 << 10) as f64,
        time: 1e5,
    };
    const FADES: f64 = 0.99;

    fn worth(&self, took: Nanos) -> u64 {
        (took as f64 * self.cost / self.time) as u64
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
    fn left(&self, speed: &Speed, now: Nanos) -> u64 {
        self.cost
            .saturating_sub(speed.worth(now.saturating_sub(self.since)))
    }
}

impl Charges {
    pub fn new() -> Self {
        Self {
            speed: Speed::UNKNOWN,
            debts: HashMap::new(),
        }
    }

    /// A large piece of this cost took so long.
    pub fn saw(&mut self, cost: u64, took: Nanos) {
        self.speed.cost = self.speed.cost * Speed::FADES + cost as f64;
        self.speed.time = self.speed.time * Speed::FADES + took.max(1) as f64;
    }

    /// What a request of this cost, which took so long, cost others beside it.
    pub fn excess(&self, cost: u64, took: Nanos) -> u64 {
        self.speed
            .worth(took)
            .saturating_sub(cost.saturating_mul(EXPECTED))
    }

    /// Remember that a user's job is charged for that. `gone`: it has left meanwhile.
    pub fn charge(&mut self, job: JobId, user: u32, more: u64, gone: bool, now: Nanos) {
        let left = self.debts.get(&job).map_or(0, |debt| debt.left(&self.speed, now));
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
            owed += if found { debt.left(&self.speed, now) } else { 0 };
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
            !debt.gone || debt.left(&self.speed, now) > 0
        });
    }
}
