//! Holds one scheduler, and exchanges it for another while requests are queued.

use std::mem::replace;
use std::ops::{Deref, DerefMut};

use crate::fifo::Fifo;
use crate::gift::Gift;
use crate::levels::Policy;
use crate::scheduler::{LocalShares, Nanos};
use crate::scheduler::{Scheduler, SchedulerKind, Settings};
use crate::stride::Stride;
use crate::tbf::Tbf;
use crate::token::Token;

/// A scheduler of any kind, as a server uses it: all methods of [`Scheduler`], and the change of policy.
pub struct Arbiter {
    policy: Policy,
    local: Option<LocalShares>,
    scheduler: Box<dyn Scheduler>,
}

impl Arbiter {
    /// Under policy `fifo` every kind is first in, first out.
    pub fn new(kind: SchedulerKind, policy: &Policy, settings: &Settings) -> Self {
        Arbiter {
            policy: policy.clone(),
            local: None,
            scheduler: build(kind, policy, settings),
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Goes on under another policy, by another scheduler. Jobs and queued requests stay; what jobs used is counted
    /// anew.
    pub fn change(&mut self, kind: SchedulerKind, policy: &Policy, settings: &Settings, now: Nanos) {
        let mut next = build(kind, policy, settings);
        for usage in self.scheduler.usage() {
            next.add_job(usage.job);
        }
        next.set_local_shares(self.local.as_ref());
        for request in replace(&mut self.scheduler, next).take_all() {
            self.scheduler
                .enqueue(request.job, request.cost, request.token, now)
                .expect("all jobs were added");
        }
        self.policy = policy.clone();
    }

    /// See [`Scheduler::set_local_shares`]; kept over a change of policy or kind.
    pub fn set_local_shares(&mut self, shares: Option<&LocalShares>) {
        self.local = shares.cloned();
        self.scheduler.set_local_shares(shares);
    }
}

impl Deref for Arbiter {
    type Target = dyn Scheduler;

    fn deref(&self) -> &Self::Target {
        self.scheduler.as_ref()
    }
}

impl DerefMut for Arbiter {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.scheduler.as_mut()
    }
}

fn build(kind: SchedulerKind, policy: &Policy, settings: &Settings) -> Box<dyn Scheduler> {
    if policy.is_fifo() {
        return Box::new(Fifo::default());
    }
    match kind {
        SchedulerKind::Stride => Box::new(Stride::new(policy, settings)),
        SchedulerKind::Token => Box::new(Token::new(policy, settings)),
        SchedulerKind::Gift => Box::new(Gift::new(policy, settings, false)),
        SchedulerKind::GiftPublished => Box::new(Gift::new(policy, settings, true)),
        SchedulerKind::Tbf => Box::new(Tbf::new(policy, settings, false)),
        SchedulerKind::TbfPublished => Box::new(Tbf::new(policy, settings, true)),
        SchedulerKind::Fifo => Box::new(Fifo::default()),
    }
}
