//! The deterministic scheduler: start-time fair queueing on every level of the policy's tree.
//!
//! Each child has a *pass*, the service that it got divided by its weight. A free worker goes from the
//! root to the child with the least pass, down to a job, and the cost of the job's oldest request is
//! added on the way. While jobs have requests, none is ever more than about one request away from its
//! share, so the variance is the least possible. (P. Goyal et al., "Start-time fair queuing", 1996;
//! C. Waldspurger, "Stride scheduling", 1995.)
//!
//! A child without requests is skipped: its part goes to its siblings. When it comes back its pass is
//! brought up to the clock of its parent less a small credit: it may catch up what jitter took, never
//! what it did not ask for.

use std::collections::BTreeSet;

use crate::job::{Job, JobId};
use crate::levels::Policy;
use crate::queues::{counted_by_queues, Queues, Slot};
use crate::scheduler::{LocalShares, Nanos};
use crate::scheduler::{Next, Scheduler, Settings, UnknownJob};
use crate::tree::{jobs_in_tree, Node, Tree, ROOT};

/// Passes are shifted back to zero beyond this, long before a request's cost gets lost in rounding.
const REBASE: f64 = 1e12;

/// Who is ahead of the others by more than any request costs was charged for the time that one took. Such a job waits
/// for others that were answered just now, which ask again in a moment: each of its requests may take long.
const AHEAD: f64 = (4 << 20) as f64;
const MOMENT: Nanos = 200_000;

#[derive(Debug, Default)]
struct State {
    /// As a child: service over weight.
    pass: f64,
    /// As a parent: pass of the child that was served last.
    clock: f64,
    /// As a parent: children that can be served, by pass. Passes are not negative, so their bits order
    /// as they do.
    ready: BTreeSet<(u64, usize)>,
}

pub(crate) struct Stride {
    queues: Queues,
    tree: Tree<State>,
    local: Option<LocalShares>,
    credit: f64,
    /// By slot: requests handed out and not completed.
    in_service: Vec<u32>,
    /// When a request of it was done last.
    answered: Vec<Option<Nanos>>,
    /// Whether it was charged for the time that one took, and may be ahead of the others for it.
    charged: Vec<bool>,
}

impl Stride {
    pub fn new(policy: &Policy, settings: &Settings) -> Self {
        Stride {
            queues: Queues::default(),
            tree: Tree::new(policy),
            local: None,
            credit: settings.credit as f64,
            in_service: Vec::new(),
            answered: Vec::new(),
            charged: Vec::new(),
        }
    }

    /// Makes a leaf ready, and the nodes above that had nothing ready.
    fn activate(&mut self, leaf: usize) {
        let mut node = leaf;
        while node != ROOT {
            let parent = self.tree.nodes[node].parent;
            let clock = self.tree.nodes[parent].data.clock;
            let least = clock - self.credit / self.tree.nodes[node].weight;
            let state = &mut self.tree.nodes[node].data;
            state.pass = state.pass.max(least);
            let pass = state.pass.to_bits();
            let ready = &mut self.tree.nodes[parent].data.ready;
            let first = ready.is_empty();
            ready.insert((pass, node));
            if !first {
                return;
            }
            node = parent;
        }
    }

    /// Charges `cost` to a ready leaf and the nodes above; `more` says whether it stays ready.
    fn charge(&mut self, leaf: usize, cost: f64, more: bool) {
        let (mut node, mut more) = (leaf, more);
        while node != ROOT {
            let parent = self.tree.nodes[node].parent;
            let weight = self.tree.nodes[node].weight;
            let state = &mut self.tree.nodes[node].data;
            let start = state.pass;
            state.pass += cost / weight;
            let pass = state.pass.to_bits();
            let above = &mut self.tree.nodes[parent].data;
            above.ready.remove(&(start.to_bits(), node));
            above.clock = above.clock.max(start);
            if more {
                above.ready.insert((pass, node));
            }
            more = !above.ready.is_empty();
            if above.clock > REBASE {
                self.rebase(parent);
            }
            node = parent;
        }
    }

    /// Takes a ready leaf out without serving it.
    fn deactivate(&mut self, leaf: usize) {
        let mut node = leaf;
        while node != ROOT {
            let parent = self.tree.nodes[node].parent;
            let pass = self.tree.nodes[node].data.pass.to_bits();
            let ready = &mut self.tree.nodes[parent].data.ready;
            ready.remove(&(pass, node));
            if !ready.is_empty() {
                return;
            }
            node = parent;
        }
    }

    fn rebase(&mut self, parent: usize) {
        let above = &self.tree.nodes[parent].data;
        let least = above.ready.first().map(|&(pass, _)| f64::from_bits(pass));
        let base = least.unwrap_or(above.clock).min(above.clock);
        self.tree.nodes[parent].data.clock -= base;
        self.tree.nodes[parent].data.ready.clear();
        let children: Vec<usize> = (1..self.tree.nodes.len())
            .filter(|&node| self.tree.nodes[node].parent == parent)
            .collect();
        for node in children {
            let pass = (self.tree.nodes[node].data.pass - base).max(0.0);
            self.tree.nodes[node].data.pass = pass;
            if self.is_ready(node) {
                let ready = &mut self.tree.nodes[parent].data.ready;
                ready.insert((pass.to_bits(), node));
            }
        }
    }

    fn is_ready(&self, node: usize) -> bool {
        match self.tree.nodes[node].slot {
            Some(slot) => self.queues.head(slot).is_some(),
            None => !self.tree.nodes[node].data.ready.is_empty(),
        }
    }

    /// Gives all nodes the weights that now hold. A child keeps its lag in units of cost.
    fn reweigh(&mut self) {
        let weights = self.tree.weights(&self.queues, self.local.as_ref());
        for (node, new) in weights.into_iter().enumerate().skip(1) {
            let old = self.tree.nodes[node].weight;
            if new <= 0.0 || new == old {
                continue; // 0: an unused place
            }
            let parent = self.tree.nodes[node].parent;
            let clock = self.tree.nodes[parent].data.clock;
            let before = self.tree.nodes[node].data.pass;
            let after = (clock + (before - clock) * old / new).max(0.0);
            self.tree.nodes[node].weight = new;
            self.tree.nodes[node].data.pass = after;
            let ready = &mut self.tree.nodes[parent].data.ready;
            if ready.remove(&(before.to_bits(), node)) {
                ready.insert((after.to_bits(), node));
            }
        }
    }

    fn insert(&mut self, slot: Slot, job: &Job) {
        if self.charged.len() <= slot {
            self.in_service.resize(slot + 1, 0);
            self.answered.resize(slot + 1, None);
            self.charged.resize(slot + 1, false);
        }
        self.in_service[slot] = 0;
        self.answered[slot] = None;
        self.charged[slot] = false;
        for node in self.tree.insert(slot, job) {
            let parent = self.tree.nodes[node].parent;
            self.tree.nodes[node].data.pass = self.tree.nodes[parent].data.clock;
        }
        self.reweigh();
        if self.queues.head(slot).is_some() {
            self.activate(self.tree.leaf(slot));
        }
    }

    /// Until when a job that was charged for its time, and is ahead of the others, waits for one of them to come back.
    fn waits(&mut self, slot: Slot, now: Nanos) -> Option<Nanos> {
        if !self.charged[slot] {
            return None;
        }
        let mut node = self.tree.leaf(slot);
        let mut is_ahead = false;
        while node != ROOT && !is_ahead {
            let Node {
                parent, weight, data, ..
            } = &self.tree.nodes[node];
            is_ahead = data.pass > self.tree.nodes[*parent].data.clock + AHEAD / weight;
            node = *parent;
        }
        self.charged[slot] = is_ahead;
        let comes_back = |other: &Slot| {
            self.in_service[*other] == 0 && self.queues.head(*other).is_none() && *other != slot
        };
        let others = self.queues.slots().filter(|_| is_ahead).filter(comes_back);
        let until = |other: Slot| self.answered[other].map_or(0, |when| when + MOMENT);
        others.map(until).max().filter(|until| *until > now)
    }

    /// Takes a leaf out of the tree; the queue stays.
    fn detach(&mut self, slot: Slot) {
        let leaf = self.tree.leaf(slot);
        if self.is_ready(leaf) {
            self.deactivate(leaf);
        }
        self.tree.remove(slot);
    }
}

impl Scheduler for Stride {
    jobs_in_tree!();

    fn enqueue(&mut self, job: JobId, cost: u64, token: u64, _now: Nanos) -> Result<(), UnknownJob> {
        let (slot, first) = self.queues.push(job, cost, token)?;
        if first {
            self.activate(self.tree.leaf(slot));
        }
        Ok(())
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.queues.backlog() == 0 {
            return Next::Empty;
        }
        let mut node = ROOT;
        let slot = loop {
            if let Some(slot) = self.tree.nodes[node].slot {
                break slot;
            }
            let first = self.tree.nodes[node].data.ready.first();
            node = first.expect("a ready node has a ready child").1;
        };
        if let Some(expiry) = self.waits(slot, now) {
            return Next::WaitUntil(expiry);
        }
        let (request, more) = self.queues.pop(slot);
        self.in_service[slot] += 1;
        self.charge(node, request.cost as f64, more);
        Next::Serve(request)
    }

    fn complete(&mut self, job: JobId, now: Nanos) {
        let Some(slot) = self.queues.find(job) else {
            return;
        };
        self.in_service[slot] = self.in_service[slot].saturating_sub(1);
        self.answered[slot] = Some(now);
    }

    fn surcharge(&mut self, job: JobId, cost: u64) {
        let Some(slot) = self.queues.find(job) else {
            return;
        };
        self.charged[slot] = true;
        let mut node = self.tree.leaf(slot);
        while node != ROOT {
            let parent = self.tree.nodes[node].parent;
            let weight = self.tree.nodes[node].weight;
            let state = &mut self.tree.nodes[node].data;
            let before = state.pass.to_bits();
            state.pass += cost as f64 / weight;
            let after = state.pass.to_bits();
            let ready = &mut self.tree.nodes[parent].data.ready;
            if ready.remove(&(before, node)) {
                ready.insert((after, node));
            }
            node = parent;
        }
    }

    counted_by_queues!();

    fn set_local_shares(&mut self, shares: Option<&LocalShares>) {
        self.local = shares.cloned();
        self.reweigh();
    }
}
