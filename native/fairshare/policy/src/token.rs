//! Statistical tokens (ThemisIO, section 3): a weighted draw over the jobs that have requests.
//!
//! The draw goes down the policy's tree, so the part of an idle entity goes to its siblings before
//! anyone else. The published draw hands out requests, whatever their size; here a drawn request of
//! cost c is taken with probability least / c, where `least` is the least cost that waits. The chance
//! of a job is then in proportion to share / cost, and its service to its share. Under
//! `CostModel::Request` all costs are 1, every draw is taken, and this is the published algorithm.

use crate::job::{Job, JobId};
use crate::levels::Policy;
use crate::queues::{counted_by_queues, Queues, Slot};
use crate::random::Random;
use crate::sampler::Sampler;
use crate::scheduler::{LocalShares, Nanos};
use crate::scheduler::{Next, Scheduler, Settings, UnknownJob};
use crate::tree::{jobs_in_tree, Tree, ROOT};

/// After so many draws that were not taken, the least cost is looked up anew.
const REFUSALS: u32 = 32;

#[derive(Debug, Default)]
struct State {
    /// As a child: place in the parent's sampler, and whether it has requests.
    place: usize,
    ready: bool,
    /// As a parent: weights of the children that have requests; children by place; places to reuse.
    sampler: Sampler,
    children: Vec<usize>,
    free: Vec<usize>,
}

pub(crate) struct Token {
    queues: Queues,
    tree: Tree<State>,
    local: Option<LocalShares>,
    random: Random,
    /// No more than any waiting job's oldest request costs.
    least: u64,
}

impl Token {
    pub fn new(policy: &Policy, settings: &Settings) -> Self {
        Token {
            queues: Queues::default(),
            tree: Tree::new(policy),
            local: None,
            random: Random::new(settings.seed),
            least: u64::MAX,
        }
    }

    /// Puts a node's weight into the draw of its parent, and goes up where that changes the parent.
    fn set_ready(&mut self, leaf: usize, ready: bool) {
        let mut node = leaf;
        let mut ready = ready;
        while node != ROOT && self.tree.nodes[node].data.ready != ready {
            self.tree.nodes[node].data.ready = ready;
            self.weigh(node);
            node = self.tree.nodes[node].parent;
            ready = self.tree.nodes[node].data.sampler.total() > 0.0;
        }
    }

    fn weigh(&mut self, node: usize) {
        let (parent, place) = (self.tree.nodes[node].parent, self.tree.nodes[node].data.place);
        let ready = self.tree.nodes[node].data.ready;
        let weight = if ready { self.tree.nodes[node].weight } else { 0.0 };
        self.tree.nodes[parent].data.sampler.set(place, weight);
    }

    fn reweigh(&mut self) {
        let weights = self.tree.weights(&self.queues, self.local.as_ref());
        for (node, weight) in weights.into_iter().enumerate().skip(1) {
            if weight > 0.0 && weight != self.tree.nodes[node].weight {
                self.tree.nodes[node].weight = weight;
                self.weigh(node);
            }
        }
    }

    fn insert(&mut self, slot: Slot, job: &Job) {
        for node in self.tree.insert(slot, job) {
            let parent = self.tree.nodes[node].parent;
            let above = &mut self.tree.nodes[parent].data;
            let place = above.free.pop().unwrap_or_else(|| {
                above.children.push(ROOT);
                above.children.len() - 1
            });
            above.children[place] = node;
            self.tree.nodes[node].data.place = place;
        }
        self.reweigh();
        if self.queues.head(slot).is_some() {
            self.set_ready(self.tree.leaf(slot), true);
        }
    }

    fn detach(&mut self, slot: Slot) {
        self.set_ready(self.tree.leaf(slot), false);
        for node in self.tree.remove(slot) {
            let (parent, place) = (self.tree.nodes[node].parent, self.tree.nodes[node].data.place);
            self.tree.nodes[parent].data.free.push(place);
        }
    }

    fn draw(&mut self) -> Slot {
        let mut node = ROOT;
        loop {
            if let Some(slot) = self.tree.nodes[node].slot {
                return slot;
            }
            let point = self.random.unit();
            let state = &self.tree.nodes[node].data;
            node = state.children[state.sampler.at(point)];
        }
    }

    fn least_waiting(&self) -> u64 {
        let heads = self.queues.slots().filter_map(|slot| self.queues.head(slot));
        heads.map(|waiting| waiting.cost).min().unwrap_or(u64::MAX)
    }
}

impl Scheduler for Token {
    jobs_in_tree!();

    fn enqueue(&mut self, job: JobId, cost: u64, token: u64, _now: Nanos) -> Result<(), UnknownJob> {
        let (slot, first) = self.queues.push(job, cost, token)?;
        // Lower than needed only costs draws; a later request of this job may be the least one.
        self.least = self.least.min(cost.max(1));
        if first {
            self.set_ready(self.tree.leaf(slot), true);
        }
        Ok(())
    }

    fn next(&mut self, _now: Nanos) -> Next {
        if self.queues.backlog() == 0 {
            return Next::Empty;
        }
        let mut refusals = 0;
        loop {
            let slot = self.draw();
            let cost = self.queues.head(slot).map_or(1, |waiting| waiting.cost);
            if cost <= self.least || self.random.unit() * (cost as f64) < self.least as f64 {
                let (request, more) = self.queues.pop(slot);
                if !more {
                    self.set_ready(self.tree.leaf(slot), false);
                } else {
                    let head = self.queues.head(slot).map_or(u64::MAX, |waiting| waiting.cost);
                    self.least = self.least.min(head);
                }
                return Next::Serve(request);
            }
            refusals += 1;
            if refusals % REFUSALS == 0 {
                self.least = self.least_waiting();
            }
        }
    }

    counted_by_queues!();

    fn set_local_shares(&mut self, shares: Option<&LocalShares>) {
        self.local = shares.cloned();
        self.reweigh();
    }
}
