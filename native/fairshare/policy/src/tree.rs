//! The tree of entities that a policy spans over the jobs: groups, users, ..., jobs as leaves.
//!
//! `D` is what a scheduler keeps at each node. The tree holds structure and weights; which nodes have
//! requests below them is the scheduler's business.

use crate::job::Job;
use crate::levels::{Level, Policy};
use crate::queues::{local_share, NumberMap, Queues, Slot};
use crate::scheduler::LocalShares;
use crate::shares::{added_weight, key, shares};

pub(crate) const ROOT: usize = 0;

#[derive(Debug)]
pub(crate) struct Node<D> {
    pub parent: usize,
    key: u64,
    /// Part of the parent's service, relative to that of the siblings; more than 0.
    pub weight: f64,
    /// Number of leaves below; a leaf has 1.
    jobs: usize,
    /// Slot of the job at a leaf.
    pub slot: Option<Slot>,
    pub data: D,
}

#[derive(Debug)]
pub(crate) struct Tree<D> {
    policy: Policy,
    levels: Vec<Level>,
    pub nodes: Vec<Node<D>>,
    free: Vec<usize>,
    children: NumberMap<(usize, u64), usize>,
    leaves: Vec<usize>, // by slot
}

/// What [`Tree::insert`] made, outermost first: each new node comes after its parent.
pub(crate) type Made = Vec<usize>;

impl<D: Default> Tree<D> {
    pub fn new(policy: &Policy) -> Self {
        let root = Node {
            parent: ROOT,
            key: 0,
            weight: 1.0,
            jobs: 0,
            slot: None,
            data: D::default(),
        };
        Tree {
            policy: policy.clone(),
            levels: policy.tree_levels(),
            nodes: vec![root],
            free: Vec::new(),
            children: NumberMap::default(),
            leaves: Vec::new(),
        }
    }

    pub fn leaf(&self, slot: Slot) -> usize {
        self.leaves[slot]
    }

    /// Whether a job stays at its leaf when it changes from `old` to `new`.
    pub fn same_place(&self, old: &Job, new: &Job) -> bool {
        let innermost = |depth| depth + 1 == self.levels.len();
        let mut levels = self.levels.iter().enumerate();
        levels.all(|(depth, &level)| key(level, innermost(depth), old) == key(level, innermost(depth), new))
    }

    /// Puts a job's leaf in. Weights are not right before [`Tree::weights`] is applied.
    pub fn insert(&mut self, slot: Slot, job: &Job) -> Made {
        let mut made = Vec::new();
        let mut parent = ROOT;
        self.nodes[ROOT].jobs += 1;
        for depth in 0..self.levels.len() {
            let innermost = depth + 1 == self.levels.len();
            let key = key(self.levels[depth], innermost, job);
            let node = match self.children.get(&(parent, key)) {
                Some(&node) => node,
                None => {
                    let node = self.make(parent, key, innermost.then_some(slot));
                    made.push(node);
                    node
                }
            };
            self.nodes[node].jobs += 1;
            parent = node;
        }
        if self.leaves.len() <= slot {
            self.leaves.resize(slot + 1, ROOT);
        }
        self.leaves[slot] = parent;
        made
    }

    /// Takes a job's leaf out, and the nodes that are then empty. The scheduler has detached it before.
    /// Returns what went, innermost first.
    pub fn remove(&mut self, slot: Slot) -> Vec<usize> {
        let mut gone = Vec::new();
        let mut node = self.leaves[slot];
        while node != ROOT {
            let parent = self.nodes[node].parent;
            self.nodes[node].jobs -= 1;
            if self.nodes[node].jobs == 0 {
                self.children.remove(&(parent, self.nodes[node].key));
                self.nodes[node].slot = None;
                self.free.push(node);
                gone.push(node);
            }
            node = parent;
        }
        self.nodes[ROOT].jobs -= 1;
        gone
    }

    /// The weight of every node by its index: what the policy says, or with `local` the sum of the
    /// shares of the jobs below, so that an idle entity's part still goes to its siblings first.
    pub fn weights(&self, queues: &Queues, local: Option<&LocalShares>) -> Vec<f64> {
        let mut weights = vec![0.0; self.nodes.len()];
        let slots: Vec<Slot> = queues.slots().collect();
        let jobs: Vec<Job> = slots.iter().map(|&slot| *queues.job(slot)).collect();
        let by_policy = local.map(|_| shares(&self.policy, &jobs));
        for (place, (&slot, job)) in slots.iter().zip(&jobs).enumerate() {
            let share = by_policy
                .as_ref()
                .map(|by_policy| local_share(local, job.id).unwrap_or(by_policy[place]));
            let mut node = self.leaves[slot];
            for &level in self.levels.iter().rev() {
                match share.or_else(|| added_weight(level, job)) {
                    Some(weight) => weights[node] += weight,
                    None => weights[node] = 1.0,
                }
                node = self.nodes[node].parent;
            }
        }
        weights[ROOT] = 1.0;
        weights
    }

    fn make(&mut self, parent: usize, key: u64, slot: Option<Slot>) -> usize {
        let node = Node {
            parent,
            key,
            weight: 1.0,
            jobs: 0,
            slot,
            data: D::default(),
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.nodes[place] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.children.insert((parent, key), place);
        place
    }
}

/// How jobs come, change and go in a [`Scheduler`](crate::scheduler::Scheduler) that keeps `queues` and a `tree`, by its
/// own `insert`, `detach` and `reweigh`.
macro_rules! jobs_in_tree {
    () => {
        fn add_job(&mut self, job: $crate::job::Job) {
            let (slot, before) = self.queues.add(job);
            match before {
                None => self.insert(slot, &job),
                Some(old) if self.tree.same_place(&old, &job) => self.reweigh(),
                Some(_) => {
                    self.detach(slot);
                    self.insert(slot, &job);
                }
            }
        }

        fn remove_job(&mut self, id: $crate::job::JobId) -> Vec<$crate::scheduler::Request> {
            let Some(slot) = self.queues.find(id) else {
                return Vec::new();
            };
            self.detach(slot);
            let requests = self.queues.remove(slot);
            self.reweigh();
            requests
        }
    };
}
pub(crate) use jobs_in_tree;
