//! Jobs and their queued requests; what all schedulers have in common.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::job::{Job, JobId};
use crate::levels::Policy;
use crate::scheduler::LocalShares;
use crate::scheduler::{Request, UnknownJob, Usage};
use crate::shares::shares;

/// Hashes numbers by one multiplication: the lookups are on the path of every request.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Place of a job in [`Queues`]; reused after the job is gone.
pub(crate) type Slot = usize;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub cost: u64,
    token: u64,
    /// Position in the order of arrival over all jobs.
    pub order: u64,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    waiting: VecDeque<Waiting>,
    served: u64,
    queued: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Queues {
    places: NumberMap<JobId, Slot>,
    entries: Vec<Option<Entry>>,
    free: Vec<Slot>,
    backlog: usize,
    arrivals: u64,
}

impl Queues {
    /// Registers `job` or replaces what is known of it; returns its slot, and what it was before.
    pub fn add(&mut self, job: Job) -> (Slot, Option<Job>) {
        if let Some(&slot) = self.places.get(&job.id) {
            let entry = self.entries[slot].as_mut().expect("a place has an entry");
            return (slot, Some(std::mem::replace(&mut entry.job, job)));
        }
        let entry = Some(Entry {
            job,
            waiting: VecDeque::new(),
            served: 0,
            queued: 0,
        });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.places.insert(job.id, slot);
        (slot, None)
    }

    pub fn remove(&mut self, slot: Slot) -> Vec<Request> {
        let requests = self.take(slot);
        let job = self.job(slot).id;
        self.places.remove(&job);
        self.entries[slot] = None;
        self.free.push(slot);
        requests.into_iter().map(|(_, request)| request).collect()
    }

    pub fn find(&self, job: JobId) -> Option<Slot> {
        self.places.get(&job).copied()
    }

    /// Queues a request; returns the slot, and whether it is now the job's only one.
    pub fn push(&mut self, job: JobId, cost: u64, token: u64) -> Result<(Slot, bool), UnknownJob> {
        let slot = self.find(job).ok_or(UnknownJob(job))?;
        let order = self.arrivals;
        self.arrivals += 1;
        self.backlog += 1;
        let cost = cost.max(1);
        let entry = self.entry_mut(slot);
        entry.queued = entry.queued.saturating_add(cost);
        entry.waiting.push_back(Waiting { cost, token, order });
        Ok((slot, entry.waiting.len() == 1))
    }

    /// Position in the order of arrival of the request that was queued last.
    pub fn last_order(&self) -> u64 {
        self.arrivals.wrapping_sub(1)
    }

    /// Takes the oldest request of a job; also says whether the job has more.
    pub fn pop(&mut self, slot: Slot) -> (Request, bool) {
        self.backlog -= 1;
        let entry = self.entry_mut(slot);
        let waiting = entry
            .waiting
            .pop_front()
            .expect("only jobs with requests are chosen");
        entry.served = entry.served.saturating_add(waiting.cost);
        entry.queued = entry.queued.saturating_sub(waiting.cost);
        (request(entry.job.id, waiting), !entry.waiting.is_empty())
    }

    /// The oldest request of a job.
    pub fn head(&self, slot: Slot) -> Option<&Waiting> {
        self.entries[slot].as_ref()?.waiting.front()
    }

    pub fn job(&self, slot: Slot) -> &Job {
        &self.entry(slot).job
    }

    pub fn length(&self, slot: Slot) -> usize {
        self.entry(slot).waiting.len()
    }

    pub fn backlog(&self) -> usize {
        self.backlog
    }

    pub fn backlog_of(&self, job: JobId) -> usize {
        self.find(job).map_or(0, |slot| self.length(slot))
    }

    pub fn usage(&self) -> Vec<Usage> {
        let mut all: Vec<Usage> = self.entries.iter().flatten().map(usage).collect();
        all.sort_by_key(|usage| usage.job.id);
        all
    }

    pub fn usage_of(&self, slot: Slot) -> Usage {
        usage(self.entry(slot))
    }

    /// Slots in use, in no meaningful but a repeatable order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.entries.len()).filter(|&slot| self.entries[slot].is_some())
    }

    pub fn take_all(&mut self) -> Vec<Request> {
        let slots: Vec<Slot> = self.slots().collect();
        let mut all: Vec<_> = slots.into_iter().flat_map(|slot| self.take(slot)).collect();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, request)| request).collect()
    }

    /// The fraction that each slot's job is entitled to: what `local` says, else the policy over the
    /// jobs that are here.
    pub fn entitled(&self, policy: &Policy, local: Option<&LocalShares>) -> Vec<(Slot, f64)> {
        let slots: Vec<Slot> = self.slots().collect();
        let jobs: Vec<Job> = slots.iter().map(|&slot| *self.job(slot)).collect();
        let by_policy = shares(policy, &jobs);
        slots
            .iter()
            .zip(jobs.iter().zip(by_policy))
            .map(|(&slot, (job, share))| (slot, local_share(local, job.id).unwrap_or(share)))
            .collect()
    }

    fn take(&mut self, slot: Slot) -> Vec<(u64, Request)> {
        let entry = self.entry_mut(slot);
        let id = entry.job.id;
        entry.queued = 0;
        let taken: Vec<_> = entry
            .waiting
            .drain(..)
            .map(|waiting| (waiting.order, request(id, waiting)))
            .collect();
        self.backlog -= taken.len();
        taken
    }

    fn entry(&self, slot: Slot) -> &Entry {
        self.entries[slot].as_ref().expect("a slot in use")
    }

    fn entry_mut(&mut self, slot: Slot) -> &mut Entry {
        self.entries[slot].as_mut().expect("a slot in use")
    }
}

/// The methods of a [`Scheduler`](crate::scheduler::Scheduler) that its field `queues` answers alone.
macro_rules! counted_by_queues {
    () => {
        fn backlog(&self) -> usize {
            self.queues.backlog()
        }

        fn backlog_of(&self, job: $crate::job::JobId) -> usize {
            self.queues.backlog_of(job)
        }

        fn usage(&self) -> Vec<$crate::scheduler::Usage> {
            self.queues.usage()
        }

        fn take_all(mut self: Box<Self>) -> Vec<$crate::scheduler::Request> {
            self.queues.take_all()
        }
    };
}
pub(crate) use counted_by_queues;

/// A share that can be used as a weight: not a number, zero and negative ones are not.
pub(crate) fn local_share(local: Option<&LocalShares>, job: JobId) -> Option<f64> {
    local?
        .get(&job)
        .copied()
        .filter(|share| share.is_finite() && *share > 0.0)
}

fn request(job: JobId, waiting: Waiting) -> Request {
    Request {
        job,
        cost: waiting.cost,
        token: waiting.token,
    }
}

fn usage(entry: &Entry) -> Usage {
    Usage {
        job: entry.job,
        served: entry.served,
        queued: entry.queued,
    }
}
