//! What each job is entitled to: the chain of transition matrices of ThemisIO, section 3.

use std::collections::HashMap;

use crate::job::Job;
use crate::levels::{Level, Policy};

/// One level of splitting, T^i: `value(j, k)` is the fraction of entity j's part that entity k gets.
///
/// Rows are the entities of the level above, columns those of this level. Each row sums to one and
/// each column has one entry that is not zero, so a column is kept as that entry.
#[derive(Clone, Debug, PartialEq)]
pub struct TransitionMatrix {
    rows: usize,
    columns: Vec<(usize, f64)>,
}

impl TransitionMatrix {
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The row of a column's only entry, and its value.
    pub fn entry(&self, column: usize) -> (usize, f64) {
        self.columns[column]
    }

    pub fn value(&self, row: usize, column: usize) -> f64 {
        let (entry, value) = self.columns[column];
        if entry == row {
            value
        } else {
            0.0
        }
    }

    /// The matrix product `self * next`; again one entry a column.
    pub fn times(&self, next: &TransitionMatrix) -> TransitionMatrix {
        assert_eq!(self.columns(), next.rows, "levels that do not follow each other");
        let columns = next.columns.iter().map(|&(middle, inner)| {
            let (row, outer) = self.columns[middle];
            (row, outer * inner)
        });
        TransitionMatrix {
            rows: self.rows,
            columns: columns.collect(),
        }
    }
}

/// What tells a job apart from others on a level, or what it shares with them.
pub(crate) fn key(level: Level, innermost: bool, job: &Job) -> u64 {
    match level {
        Level::Group => u64::from(job.group),
        Level::User => u64::from(job.user),
        Level::Size if !innermost => u64::from(job.size.max(1)),
        Level::Priority if !innermost => u64::from(job.priority.max(1)),
        Level::Job | Level::Size | Level::Priority => job.id,
    }
}

/// What a job adds to the weight of its entity on a level, or None where all entities are alike.
pub(crate) fn added_weight(level: Level, job: &Job) -> Option<f64> {
    match level {
        Level::Group | Level::User | Level::Job => None,
        Level::Size => Some(f64::from(job.size.max(1))),
        Level::Priority => Some(f64::from(job.priority.max(1))),
    }
}

/// The chain T^0, T^1, ... of a policy; the last one's columns are the jobs, in the order given.
///
/// `fifo` splits nothing: one matrix in which all jobs are alike, what nobody is promised.
/// Jobs must have distinct ids.
pub fn transition_matrices(policy: &Policy, jobs: &[Job]) -> Vec<TransitionMatrix> {
    let levels = policy.tree_levels();
    let mut chain = Vec::with_capacity(levels.len());
    let mut above: Vec<usize> = vec![0; jobs.len()]; // entity of each job on the level above
    let mut rows = 1;
    for (depth, &level) in levels.iter().enumerate() {
        let innermost = depth + 1 == levels.len();
        let mut number: HashMap<(usize, u64), usize> = HashMap::new();
        let mut entities: Vec<(usize, f64)> = Vec::new(); // row, weight
        let mut here = Vec::with_capacity(jobs.len());
        for (place, job) in jobs.iter().enumerate() {
            let row = above[place];
            let entity = *number
                .entry((row, key(level, innermost, job)))
                .or_insert_with(|| {
                    entities.push((row, 0.0));
                    entities.len() - 1
                });
            match added_weight(level, job) {
                Some(weight) => entities[entity].1 += weight,
                None => entities[entity].1 = 1.0,
            }
            here.push(entity);
        }
        let mut total = vec![0.0; rows];
        for &(row, weight) in &entities {
            total[row] += weight;
        }
        for (row, weight) in &mut entities {
            *weight /= total[*row];
        }
        chain.push(TransitionMatrix {
            rows,
            columns: entities,
        });
        rows = chain[depth].columns();
        above = here;
    }
    chain
}

/// Fraction of the service that each job is entitled to while all of them have requests, in the order
/// of `jobs`; the product of the chain of transition matrices. Sums to 1, or is empty.
pub fn shares(policy: &Policy, jobs: &[Job]) -> Vec<f64> {
    let mut chain = transition_matrices(policy, jobs).into_iter();
    let Some(first) = chain.next() else {
        return Vec::new();
    };
    let product = chain.fold(first, |product, next| product.times(&next));
    product.columns.iter().map(|&(_, share)| share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn of(policy: &str, jobs: &[Job]) -> Vec<f64> {
        shares(&Policy::parse(policy).unwrap(), jobs)
    }

    fn same(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).abs() < 1e-12, "{a:?} {b:?}");
        }
    }

    /// Figure 4: two users, the first with two jobs and the second with four.
    #[test]
    fn user_then_job_is_the_papers_example() {
        let jobs: Vec<Job> = (0..6)
            .map(|id| Job::new(id).user(if id < 2 { 1 } else { 2 }))
            .collect();
        let policy = Policy::parse("user-then-job-fair").unwrap();
        let chain = transition_matrices(&policy, &jobs);
        assert_eq!((chain[0].rows(), chain[0].columns()), (1, 2));
        assert_eq!((chain[1].rows(), chain[1].columns()), (2, 6));
        assert_eq!(chain[1].value(0, 0), 0.5); // half of user 1's part
        assert_eq!(chain[1].value(1, 0), 0.0); // nothing of user 2's
        assert_eq!(chain[1].value(1, 5), 0.25);
        // 1/2 * 1/2 for user 1's jobs, 1/2 * 1/4 for user 2's.
        same(&shares(&policy, &jobs), &[0.25, 0.25, 0.125, 0.125, 0.125, 0.125]);
        // user-fair alone says nothing of jobs within a user, so they are alike: the same.
        same(&of("user-fair", &jobs), &shares(&policy, &jobs));
    }

    /// Figure 9: user 1 has jobs of 1 and 2 nodes, user 2 of 4 and 6.
    #[test]
    fn two_levels_by_hand() {
        let jobs = [
            Job::new(1).user(1).size(1),
            Job::new(2).user(1).size(2),
            Job::new(3).user(2).size(4),
            Job::new(4).user(2).size(6),
        ];
        // 1/2 * (1/3, 2/3) and 1/2 * (4/10, 6/10).
        same(
            &of("user-then-size-fair", &jobs),
            &[1.0 / 6.0, 1.0 / 3.0, 0.2, 0.3],
        );
        // 13 nodes in all.
        same(
            &of("size-fair", &jobs),
            &[1.0 / 13.0, 2.0 / 13.0, 4.0 / 13.0, 6.0 / 13.0],
        );
        same(&of("job-fair", &jobs), &[0.25; 4]);
    }

    /// Figure 11: group 1 is one user with one job; group 2 has users 2, 3 and 4.
    #[test]
    fn three_levels_by_hand() {
        let sizes = [
            (1, 1, 1),
            (2, 2, 2),
            (2, 2, 3),
            (2, 2, 2),
            (2, 3, 3),
            (2, 3, 2),
            (2, 4, 1),
            (2, 4, 2),
        ];
        let jobs: Vec<Job> = (0u64..)
            .zip(sizes)
            .map(|(id, (group, user, size))| Job::new(id).group(group).user(user).size(size))
            .collect();
        // Group 2's half is a sixth of the whole for each user; user 2's 2:3:2 are sevenths of it,
        // user 3's 3:2 fifths, user 4's 1:2 thirds.
        same(
            &of("group-user-size-fair", &jobs),
            &[
                0.5,
                2.0 / 42.0,
                3.0 / 42.0,
                2.0 / 42.0,
                3.0 / 30.0,
                2.0 / 30.0,
                1.0 / 18.0,
                2.0 / 18.0,
            ],
        );
    }

    #[test]
    fn classes_above_another_level() {
        // Two jobs of priority 3 and one of 2: classes weigh 6 and 2 (what their jobs weigh together),
        // users 1 and 2 split the first class in halves.
        let jobs = [
            Job::new(1).user(1).priority(3),
            Job::new(2).user(2).priority(3),
            Job::new(3).user(1).priority(2),
        ];
        same(&of("priority-then-user-fair", &jobs), &[0.375, 0.375, 0.25]);
        // While all have requests, a class level changes nothing for jobs that are alike within it.
        same(&of("priority-then-job-fair", &jobs), &of("priority-fair", &jobs));
    }

    #[test]
    fn the_same_user_in_two_groups_is_two_entities() {
        let jobs = [
            Job::new(1).group(1).user(7),
            Job::new(2).group(2).user(7),
            Job::new(3).group(2).user(8),
        ];
        same(&of("group-then-user-fair", &jobs), &[0.5, 0.25, 0.25]);
    }

    #[test]
    fn zero_size_counts_as_one_and_no_jobs_as_nothing() {
        same(
            &of("size-fair", &[Job::new(1).size(0), Job::new(2).size(3)]),
            &[0.25, 0.75],
        );
        assert!(of("group-user-size-fair", &[]).is_empty());
    }

    /// The definition without matrices: split among the entities of a level, and each part again.
    fn split(levels: &[Level], jobs: &[Job], part: f64, out: &mut HashMap<u64, f64>) {
        let Some((&level, inner)) = levels.split_first() else {
            out.insert(jobs[0].id, part);
            return;
        };
        let mut entities: Vec<(u64, Vec<Job>)> = Vec::new();
        for job in jobs {
            let name = match (level, inner.is_empty()) {
                (Level::Group, _) => job.group.into(),
                (Level::User, _) => job.user.into(),
                (Level::Size, false) => job.size.into(),
                (Level::Priority, false) => job.priority.into(),
                _ => job.id,
            };
            match entities.iter_mut().find(|(known, _)| *known == name) {
                Some((_, members)) => members.push(*job),
                None => entities.push((name, vec![*job])),
            }
        }
        let weigh = |members: &[Job]| -> f64 {
            match level {
                Level::Size => members.iter().map(|job| f64::from(job.size)).sum(),
                Level::Priority => members.iter().map(|job| f64::from(job.priority)).sum(),
                _ => 1.0,
            }
        };
        let total: f64 = entities.iter().map(|(_, members)| weigh(members)).sum();
        for (_, members) in &entities {
            split(inner, members, part * weigh(members) / total, out);
        }
    }

    #[test]
    fn the_chain_equals_direct_splitting() {
        let policies = [
            "job-fair",
            "size-fair",
            "user-fair",
            "user-then-size-fair",
            "group-user-size-fair",
            "priority-group-user-size-fair",
            "size-priority-user-group-job-fair",
            "group-priority-fair",
        ];
        let mut random = Random::new(3);
        for round in 0..400 {
            let policy = Policy::parse(policies[round % policies.len()]).unwrap();
            let jobs: Vec<Job> = (0..1 + random.below(40))
                .map(|id| {
                    Job::new(id * 7)
                        .group(random.below(3) as u32)
                        .user(random.below(5) as u32)
                        .size(1 + random.below(4) as u32)
                        .priority(1 + random.below(3) as u32)
                })
                .collect();
            let chain = transition_matrices(&policy, &jobs);
            for matrix in &chain {
                for row in 0..matrix.rows() {
                    let sum: f64 = (0..matrix.columns())
                        .map(|column| matrix.value(row, column))
                        .sum();
                    assert!((sum - 1.0).abs() < 1e-9);
                }
            }
            let mut direct = HashMap::new();
            split(&policy.tree_levels(), &jobs, 1.0, &mut direct);
            let by_chain = shares(&policy, &jobs);
            same(
                &by_chain,
                &jobs.iter().map(|job| direct[&job.id]).collect::<Vec<_>>(),
            );
            assert!((by_chain.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
