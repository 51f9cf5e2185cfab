//! GIFT (T. Patel et al., FAST 2020), as a scheduler of one server.
//!
//! Every epoch the jobs that have requests get their fair parts; a job that was held below its part in
//! an epoch gets coupons for what it missed, and redeems them as a larger part later (throttle and
//! reward). Requests are drawn by these parts.
//!
//! *As published* in ThemisIO's comparison (section 5.4, read in its code): parts are fixed for the
//! epoch, a draw that hits a job without requests is lost, a job that comes within an epoch waits
//! for the next one, and a request counts as one whatever its size. The *fair* version draws among the jobs that have
//! requests now, new ones included, in proportion to part over cost.

use crate::job::{Job, JobId};
use crate::levels::Policy;
use crate::queues::{counted_by_queues, Queues, Slot};
use crate::random::Random;
use crate::scheduler::{LocalShares, Nanos};
use crate::scheduler::{Next, Request, Scheduler, Settings, UnknownJob};

/// The most that coupons add to a part, as a factor.
const MOST_REWARD: f64 = 1.5;

#[derive(Clone, Copy, Debug)]
struct Account {
    /// What the policy entitles the job to.
    share: f64,
    /// Part in this epoch that is fair among the jobs that had requests when it began; 0 for the others.
    part: f64,
    /// Factor on the part that coupons buy in this epoch.
    reward: f64,
    /// Cost units owed from epochs in which it got less than its part.
    coupons: f64,
    /// Cost served when the epoch began.
    served: u64,
}

impl Account {
    const NEW: Account = Account {
        share: 0.0,
        part: 0.0,
        reward: 1.0,
        coupons: 0.0,
        served: 0,
    };
}

pub(crate) struct Gift {
    published: bool,
    policy: Policy,
    queues: Queues,
    accounts: Vec<Account>, // by slot
    local: Option<LocalShares>,
    random: Random,
    epoch: Nanos,
    wasted_draw: Nanos,
    ends: Option<Nanos>,
    /// Cost served in the epoch before.
    last_epoch: f64,
}

impl Gift {
    pub fn new(policy: &Policy, settings: &Settings, published: bool) -> Self {
        Gift {
            published,
            policy: policy.clone(),
            queues: Queues::default(),
            accounts: Vec::new(),
            local: None,
            random: Random::new(settings.seed),
            epoch: settings.epoch.max(1),
            wasted_draw: settings.wasted_draw.max(1),
            ends: None,
            last_epoch: 0.0,
        }
    }

    fn reshare(&mut self) {
        for (slot, share) in self.queues.entitled(&self.policy, self.local.as_ref()) {
            self.accounts[slot].share = share;
        }
    }

    /// Settles the epoch that ended and hands out the parts of the next one.
    fn turn_epoch(&mut self, now: Nanos) {
        match self.ends {
            Some(ends) if now < ends => return,
            Some(ends) => {
                self.settle();
                let behind = (now - ends) / self.epoch;
                self.ends = Some(ends + (behind + 1) * self.epoch);
            }
            None => self.ends = Some(now + self.epoch),
        }
        let slots: Vec<Slot> = self.queues.slots().collect();
        let wants = |slot: &&Slot| self.queues.head(**slot).is_some();
        let wanted: f64 = slots
            .iter()
            .filter(wants)
            .map(|&slot| self.accounts[slot].share)
            .sum();
        for &slot in &slots {
            let wants = self.queues.head(slot).is_some();
            let account = &mut self.accounts[slot];
            account.served = self.queues.usage_of(slot).served;
            account.part = if wants { account.share / wanted } else { 0.0 };
            // Redeemed at what the last epoch's service was worth.
            let fair = account.part * self.last_epoch;
            account.reward = if fair > 0.0 {
                (1.0 + account.coupons / fair).min(MOST_REWARD)
            } else {
                1.0
            };
        }
    }

    /// Coupons: a job that had requests from beginning to end of the epoch is owed what it got less
    /// than its part of all that jobs with parts got. Getting more than the part redeems them.
    fn settle(&mut self) {
        let slots: Vec<Slot> = self.queues.slots().collect();
        let got: Vec<u64> = slots
            .iter()
            .map(|&slot| self.queues.usage_of(slot).served - self.accounts[slot].served)
            .collect();
        self.last_epoch = got.iter().sum::<u64>() as f64;
        let with_parts = slots
            .iter()
            .zip(&got)
            .filter(|(&slot, _)| self.accounts[slot].part > 0.0);
        let shared_out = with_parts.map(|(_, &got)| got).sum::<u64>() as f64;
        for (&slot, &got) in slots.iter().zip(&got) {
            let account = &mut self.accounts[slot];
            let missed = account.part * shared_out - got as f64;
            let throttled = account.part > 0.0 && self.queues.head(slot).is_some();
            if throttled || missed < 0.0 {
                account.coupons = (account.coupons + missed).max(0.0);
            }
        }
    }

    /// The published draw: over the parts of the epoch, whether the job has requests or not.
    fn next_published(&mut self, now: Nanos) -> Next {
        let ends = self.ends.unwrap_or(now);
        let slots: Vec<Slot> = self.queues.slots().collect();
        let can_hit = slots
            .iter()
            .any(|&slot| self.accounts[slot].part > 0.0 && self.queues.head(slot).is_some());
        if !can_hit {
            return Next::WaitUntil(ends); // every draw until then would be lost
        }
        let segment = |slot: Slot| self.accounts[slot].part * self.accounts[slot].reward;
        let mut point = self.random.unit() * slots.iter().map(|&slot| segment(slot)).sum::<f64>();
        for slot in slots {
            point -= self.accounts[slot].part * self.accounts[slot].reward;
            if point < 0.0 && self.queues.head(slot).is_some() {
                return Next::Serve(self.queues.pop(slot).0);
            } else if point < 0.0 {
                break;
            }
        }
        Next::WaitUntil(ends.min(now + self.wasted_draw))
    }

    fn next_fair(&mut self) -> Next {
        let weigh = |gift: &Gift, slot: Slot| {
            let account = &gift.accounts[slot];
            let cost = gift.queues.head(slot)?.cost as f64;
            Some(account.share * account.reward / cost)
        };
        let weights: Vec<(Slot, f64)> = self
            .queues
            .slots()
            .filter_map(|slot| Some((slot, weigh(self, slot)?)))
            .collect();
        let mut point = self.random.unit() * weights.iter().map(|(_, weight)| weight).sum::<f64>();
        let last = weights.last().map(|(slot, _)| *slot);
        let hit = weights.into_iter().find(|(_, weight)| {
            point -= weight;
            point < 0.0
        });
        match hit.map(|(slot, _)| slot).or(last) {
            Some(slot) => Next::Serve(self.queues.pop(slot).0),
            None => Next::Empty,
        }
    }
}

impl Scheduler for Gift {
    fn add_job(&mut self, job: Job) {
        let (slot, before) = self.queues.add(job);
        if self.accounts.len() <= slot {
            self.accounts.resize(slot + 1, Account::NEW);
        }
        if before.is_none() {
            self.accounts[slot] = Account::NEW;
        }
        self.reshare();
    }

    fn remove_job(&mut self, id: JobId) -> Vec<Request> {
        let Some(slot) = self.queues.find(id) else {
            return Vec::new();
        };
        let requests = self.queues.remove(slot);
        self.accounts[slot] = Account::NEW;
        self.reshare();
        requests
    }

    fn enqueue(&mut self, job: JobId, cost: u64, token: u64, now: Nanos) -> Result<(), UnknownJob> {
        self.turn_epoch(now);
        self.queues.push(job, cost, token).map(|_| ())
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.queues.backlog() == 0 {
            return Next::Empty;
        }
        self.turn_epoch(now);
        if self.published {
            self.next_published(now)
        } else {
            self.next_fair()
        }
    }

    counted_by_queues!();

    fn set_local_shares(&mut self, shares: Option<&LocalShares>) {
        self.local = shares.cloned();
        self.reshare();
    }
}
