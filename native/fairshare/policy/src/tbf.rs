//! Token bucket filter (Y. Qian et al., SC 2017), as a scheduler of one server.
//!
//! Every job has a bucket that fills with its part of a rate; a request is served when its job's bucket
//! holds its cost, the job that reached that first goes first. What flows over from the buckets of idle
//! jobs goes to the others in proportion (proportional sharing of spare bandwidth), and a bucket
//! does not flow over while its job has requests (hard token compensation).
//!
//! *As published* in ThemisIO's comparison (section 5.4, read in its code): the rate is configured, lies
//! below what the hardware can do, and caps the server. In the *fair* version the buckets fill with what the
//! server delivers, and a worker is never kept waiting.

use crate::job::{Job, JobId};
use crate::levels::Policy;
use crate::queues::{counted_by_queues, Queues, Slot};
use crate::scheduler::{LocalShares, Nanos};
use crate::scheduler::{Next, Request, Scheduler, Settings, UnknownJob};

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    share: f64,
    level: f64,
}

pub(crate) struct Tbf {
    published: bool,
    policy: Policy,
    queues: Queues,
    buckets: Vec<Bucket>, // by slot
    local: Option<LocalShares>,
    rate: f64, // cost units per nanosecond
    depth: f64,
    filled_at: Option<Nanos>,
}

impl Tbf {
    pub fn new(policy: &Policy, settings: &Settings, published: bool) -> Self {
        Tbf {
            published,
            policy: policy.clone(),
            queues: Queues::default(),
            buckets: Vec::new(),
            local: None,
            rate: settings.rate.max(1.0) / 1e9,
            depth: settings.bucket as f64,
            filled_at: None,
        }
    }

    fn reshare(&mut self) {
        for (slot, share) in self.queues.entitled(&self.policy, self.local.as_ref()) {
            self.buckets[slot].share = share;
        }
    }

    /// Distributes `amount` tokens by share; what flows over goes to the jobs that have requests.
    fn fill(&mut self, amount: f64) {
        let mut spare = 0.0;
        let mut wanting = 0.0;
        let slots: Vec<Slot> = self.queues.slots().collect();
        for &slot in &slots {
            let bucket = &mut self.buckets[slot];
            bucket.level += bucket.share * amount;
            if self.queues.head(slot).is_some() {
                wanting += bucket.share;
            } else if bucket.level > self.depth {
                spare += bucket.level - self.depth;
                bucket.level = self.depth;
            }
        }
        if wanting > 0.0 {
            for &slot in &slots {
                if self.queues.head(slot).is_some() {
                    let bucket = &mut self.buckets[slot];
                    bucket.level += spare * bucket.share / wanting;
                }
            }
        }
    }

    fn fill_by_time(&mut self, now: Nanos) {
        let since = self.filled_at.replace(now).unwrap_or(now);
        if now > since {
            self.fill((now - since) as f64 * self.rate);
        }
    }

    /// The job whose oldest request is the first that its bucket pays, and the nanoseconds until then.
    fn first(&self) -> Option<(Slot, f64)> {
        let waits = self.queues.slots().filter_map(|slot| {
            let cost = self.queues.head(slot)?.cost as f64;
            let bucket = &self.buckets[slot];
            Some((slot, (cost - bucket.level) / (bucket.share * self.rate)))
        });
        waits.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn serve(&mut self, slot: Slot) -> Next {
        let request = self.queues.pop(slot).0;
        self.buckets[slot].level -= request.cost as f64;
        if !self.published {
            self.fill(request.cost as f64);
        }
        Next::Serve(request)
    }
}

impl Scheduler for Tbf {
    fn add_job(&mut self, job: Job) {
        let (slot, before) = self.queues.add(job);
        if self.buckets.len() <= slot {
            self.buckets.resize(slot + 1, Bucket::default());
        }
        if before.is_none() {
            self.buckets[slot] = Bucket::default();
        }
        self.reshare();
    }

    fn remove_job(&mut self, id: JobId) -> Vec<Request> {
        let Some(slot) = self.queues.find(id) else {
            return Vec::new();
        };
        let requests = self.queues.remove(slot);
        self.reshare();
        requests
    }

    fn enqueue(&mut self, job: JobId, cost: u64, token: u64, now: Nanos) -> Result<(), UnknownJob> {
        if self.published {
            self.fill_by_time(now);
        }
        let (slot, first) = self.queues.push(job, cost, token)?;
        if first {
            // A job that comes back starts with a full bucket at most, and without old debt.
            let bucket = &mut self.buckets[slot];
            bucket.level = bucket.level.clamp(-self.depth, self.depth);
        }
        Ok(())
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.published {
            self.fill_by_time(now);
        }
        match self.first() {
            None => Next::Empty,
            Some((slot, wait)) if wait <= 0.0 || !self.published => self.serve(slot),
            Some((_, wait)) => Next::WaitUntil(now + (wait.ceil() as Nanos).max(1)),
        }
    }

    counted_by_queues!();

    fn set_local_shares(&mut self, shares: Option<&LocalShares>) {
        self.local = shares.cloned();
        self.reshare();
    }
}
