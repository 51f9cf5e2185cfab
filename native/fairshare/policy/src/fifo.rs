//! First in, first out over all jobs.

use std::collections::VecDeque;

use crate::job::{Job, JobId};
use crate::queues::{counted_by_queues, Queues, Slot};
use crate::scheduler::{LocalShares, Nanos};
use crate::scheduler::{Next, Request, Scheduler, UnknownJob};

#[derive(Default)]
pub(crate) struct Fifo {
    queues: Queues,
    /// Order of arrival and slot of each request. Those of removed jobs stay until their turn.
    line: VecDeque<(u64, Slot)>,
}

impl Scheduler for Fifo {
    fn add_job(&mut self, job: Job) {
        self.queues.add(job);
    }

    fn remove_job(&mut self, id: JobId) -> Vec<Request> {
        match self.queues.find(id) {
            Some(slot) => self.queues.remove(slot),
            None => Vec::new(),
        }
    }

    fn enqueue(&mut self, job: JobId, cost: u64, token: u64, _now: Nanos) -> Result<(), UnknownJob> {
        let (slot, _) = self.queues.push(job, cost, token)?;
        self.line.push_back((self.queues.last_order(), slot));
        Ok(())
    }

    fn next(&mut self, _now: Nanos) -> Next {
        while let Some((order, slot)) = self.line.pop_front() {
            if self
                .queues
                .head(slot)
                .is_some_and(|waiting| waiting.order == order)
            {
                return Next::Serve(self.queues.pop(slot).0);
            }
        }
        Next::Empty
    }

    counted_by_queues!();

    fn set_local_shares(&mut self, _shares: Option<&LocalShares>) {}
}
