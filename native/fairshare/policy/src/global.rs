//! Fair shares over several servers (ThemisIO, section 3.1: lambda-delayed fairness).
//!
//! Files lie on different sets of servers, so each server sees other jobs, and shares that are right on
//! each of them can be wrong in sum. Every lambda the servers exchange what their jobs used and want;
//! each then computes the same answer from the same tables: how much of its own service each job gets.
//!
//! A job's entitlement is a budget that it spends over the servers on which it has requests. Each server
//! sells its service at the price at which all is sold; each job moves its budget towards where it got
//! its service (proportional response: F. Wu and L. Zhang, "Proportional response dynamics leads to
//! market equilibrium", 2007). The fixed point is the weighted max-min fair allocation: a job that can only use a
//! crowded server is given way to there by the jobs that can go elsewhere. Entities of a policy's outer
//! levels (users, groups) are held to their parts by scaling the budgets of their jobs.
//!
//! Pure functions: no clock, no network.

use std::collections::{BTreeMap, HashMap};

use crate::job::{Job, JobId};
use crate::levels::Policy;
use crate::scheduler::LocalShares;
use crate::shares::key;
use crate::shares::shares;

/// A job on one server during the last interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobUse {
    pub job: Job,
    /// Cost served in the interval.
    pub served: u64,
    /// Cost that waits now.
    pub queued: u64,
}

/// A server's table, as it sends it to the others.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTable {
    /// Any number that tells servers apart.
    pub server: u64,
    /// What the server can serve in an interval, in the units of `served`; only ratios matter.
    pub capacity: f64,
    /// The jobs that the server knows. Those with nothing served and nothing queued are idle there.
    pub jobs: Vec<JobUse>,
}

/// Rounds of proportional response; it stops earlier once no part moves any more.
const ROUNDS: usize = 400;
/// Rounds in which entities of the outer levels are brought to their parts.
const OUTER_ROUNDS: usize = 12;
const SETTLED: f64 = 1e-7;
/// A job that leaves a server with nothing queued wants as much as it got, and this factor more.
const HEADROOM: f64 = 1.25;
/// No server's part of a budget falls below this fraction of it, so that demand can come back.
const LEAST_BID: f64 = 1e-4;

/// One job's dealings with one server.
struct Edge {
    job: usize,
    server: usize,
    /// The most that it can use there, in units of service.
    cap: f64,
    bid: f64,
    got: f64,
}

/// Fraction of each server's service for each of its active jobs, in the order of `tables`.
///
/// Equal to the policy's shares on every server when all servers see the same jobs. Jobs that are idle
/// everywhere have no part, and those idle on one server none there.
pub fn local_shares(policy: &Policy, tables: &[ServerTable]) -> Vec<LocalShares> {
    let (jobs, mut edges) = market(tables);
    let entitled = shares(policy, &jobs);
    let mut budgets = entitled.clone();
    let capacity: f64 = tables.iter().map(|table| table.capacity.max(0.0)).sum();
    let outer = outer_entities(policy, &jobs);
    for _ in 0..if outer.is_empty() { 1 } else { OUTER_ROUNDS } {
        trade(&budgets, tables, &mut edges);
        let mut got = vec![0.0; jobs.len()];
        for edge in &edges {
            got[edge.job] += edge.got / capacity;
        }
        if !rescale(&outer, &entitled, &got, &mut budgets) {
            break;
        }
    }
    let mut answer: Vec<LocalShares> = tables.iter().map(|_| LocalShares::new()).collect();
    let mut sums = vec![0.0; tables.len()];
    for edge in &edges {
        sums[edge.server] += edge.bid;
    }
    for edge in &edges {
        answer[edge.server].insert(jobs[edge.job].id, edge.bid / sums[edge.server]);
    }
    answer
}

/// The active jobs, by id, and where they are active. A job's latest description counts.
fn market(tables: &[ServerTable]) -> (Vec<Job>, Vec<Edge>) {
    let mut known: BTreeMap<JobId, Job> = BTreeMap::new();
    let active = |entry: &&JobUse| entry.served > 0 || entry.queued > 0;
    for entry in tables.iter().flat_map(|table| table.jobs.iter().filter(active)) {
        known.insert(entry.job.id, entry.job);
    }
    let jobs: Vec<Job> = known.into_values().collect();
    let place: HashMap<JobId, usize> = jobs.iter().enumerate().map(|(n, job)| (job.id, n)).collect();
    let mut edges = Vec::new();
    for (server, table) in tables.iter().enumerate() {
        for entry in table.jobs.iter().filter(active) {
            let wanted = if entry.queued > 0 {
                f64::INFINITY
            } else {
                entry.served as f64 * HEADROOM
            };
            edges.push(Edge {
                job: place[&entry.job.id],
                server,
                cap: wanted,
                bid: 0.0,
                got: 0.0,
            });
        }
    }
    (jobs, edges)
}

/// Runs the market: on return `bid` and `got` of the edges are those of the equilibrium.
fn trade(budgets: &[f64], tables: &[ServerTable], edges: &mut [Edge]) {
    let mut reach = vec![0.0; budgets.len()];
    for edge in edges.iter() {
        reach[edge.job] += tables[edge.server].capacity.max(f64::MIN_POSITIVE);
    }
    for edge in edges.iter_mut() {
        let part = tables[edge.server].capacity.max(f64::MIN_POSITIVE) / reach[edge.job];
        edge.bid = budgets[edge.job] * part;
    }
    let mut by_server: Vec<Vec<usize>> = vec![Vec::new(); tables.len()];
    for (place, edge) in edges.iter().enumerate() {
        by_server[edge.server].push(place);
    }
    for _ in 0..ROUNDS {
        for (server, places) in by_server.iter().enumerate() {
            sell(tables[server].capacity.max(0.0), places, edges);
        }
        let mut got = vec![0.0; budgets.len()];
        for edge in edges.iter() {
            got[edge.job] += edge.got;
        }
        let mut moved: f64 = 0.0;
        for edge in edges.iter_mut() {
            let budget = budgets[edge.job];
            let part = if got[edge.job] > 0.0 {
                edge.got / got[edge.job]
            } else {
                1.0
            };
            let bid = budget * part.max(LEAST_BID);
            moved = moved.max((bid - edge.bid).abs() / budget);
            edge.bid = bid;
        }
        if moved < SETTLED {
            return;
        }
    }
}

/// Shares a server's capacity in proportion to the bids; what a job cannot use goes to the others.
fn sell(capacity: f64, places: &[usize], edges: &mut [Edge]) {
    let mut left = capacity;
    let mut bids: f64 = places.iter().map(|&place| edges[place].bid).sum();
    let mut open: Vec<usize> = places.to_vec();
    // Those that need least for their bid are satisfied first.
    open.sort_by(|&a, &b| {
        let need = |place: usize| edges[place].cap / edges[place].bid;
        need(a).total_cmp(&need(b))
    });
    for place in open {
        let edge = &mut edges[place];
        let offered = if bids > 0.0 { left * edge.bid / bids } else { 0.0 };
        edge.got = offered.min(edge.cap);
        left -= edge.got;
        bids -= edge.bid;
    }
}

/// The jobs of each entity on each level but the innermost, by level.
fn outer_entities(policy: &Policy, jobs: &[Job]) -> Vec<Vec<Vec<usize>>> {
    let levels = policy.tree_levels();
    let mut path: Vec<Vec<u64>> = vec![Vec::new(); jobs.len()];
    let mut all = Vec::new();
    for &level in &levels[..levels.len() - 1] {
        let mut entities: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
        for (place, job) in jobs.iter().enumerate() {
            path[place].push(key(level, false, job));
            entities.entry(path[place].clone()).or_default().push(place);
        }
        all.push(entities.into_values().collect());
    }
    all
}

/// Scales the budgets of each entity's jobs by what the entity lacks; false once nothing changes much.
fn rescale(outer: &[Vec<Vec<usize>>], entitled: &[f64], got: &[f64], budgets: &mut [f64]) -> bool {
    let mut changed = false;
    for entity in outer.iter().flatten().filter(|entity| entity.len() > 1) {
        let due: f64 = entity.iter().map(|&job| entitled[job]).sum();
        let has: f64 = entity.iter().map(|&job| got[job]).sum();
        if has <= 0.0 || due <= has * 1.001 {
            continue;
        }
        // Only its jobs that got their part can get more; the others have all that their servers give.
        for &job in entity {
            if got[job] < 0.98 * budgets[job].min(entitled[job]) {
                continue;
            }
            budgets[job] *= (due / has).min(2.0);
            changed = true;
        }
    }
    let sum: f64 = budgets.iter().sum();
    for budget in budgets.iter_mut() {
        *budget /= sum;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(job: Job) -> JobUse {
        JobUse {
            job,
            served: 1,
            queued: 1,
        }
    }

    fn table(server: u64, jobs: Vec<JobUse>) -> ServerTable {
        ServerTable {
            server,
            capacity: 100.0,
            jobs,
        }
    }

    fn policy(name: &str) -> Policy {
        Policy::parse(name).unwrap()
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 2e-3, "{a} is not {b}");
    }

    /// Figure 5: job 1 (16 nodes) on both servers, jobs 2 and 3 (8 nodes) on one each. 16:8:8 of two servers
    /// are 1, 1/2 and 1/2 server, so job 1 gets half of each.
    #[test]
    fn the_papers_example() {
        let jobs = [Job::new(1).size(16), Job::new(2).size(8), Job::new(3).size(8)];
        let tables = [
            table(1, vec![busy(jobs[0]), busy(jobs[1])]),
            table(2, vec![busy(jobs[0]), busy(jobs[2])]),
        ];
        let shares = local_shares(&policy("size-fair"), &tables);
        for (server, other) in [(0, 2), (1, 3)] {
            near(shares[server][&1], 0.5);
            near(shares[server][&other], 0.5);
        }
    }

    /// Job 1 can use both servers, job 2 only the first: job-fair in sum is one server each, so job 1
    /// leaves the first one.
    #[test]
    fn a_job_with_a_choice_gives_way() {
        let (one, two) = (Job::new(1), Job::new(2));
        let tables = [table(1, vec![busy(one), busy(two)]), table(2, vec![busy(one)])];
        let shares = local_shares(&policy("job-fair"), &tables);
        assert!(shares[0][&1] < 0.02, "{:?}", shares[0]);
        near(shares[1][&1], 1.0);
    }

    /// Jobs 1, 2 and 3 only on server 1, job 4 only on server 2: nobody can be helped, and the first
    /// server is split in thirds.
    #[test]
    fn what_placement_forbids_is_shared_out_locally() {
        let tables = [
            table(1, (1..4).map(|id| busy(Job::new(id))).collect()),
            table(2, vec![busy(Job::new(4))]),
        ];
        let shares = local_shares(&policy("job-fair"), &tables);
        for id in 1..4 {
            near(shares[0][&id], 1.0 / 3.0);
        }
        near(shares[1][&4], 1.0);
    }

    #[test]
    fn equal_tables_give_the_policys_shares() {
        let jobs: Vec<Job> = [(1, 1, 1), (2, 1, 2), (3, 2, 4), (4, 2, 6)]
            .map(|(id, user, size)| Job::new(id).user(user).size(size))
            .to_vec();
        for name in ["size-fair", "user-then-size-fair", "job-fair"] {
            let tables: Vec<_> = (0..5)
                .map(|n| table(n, jobs.iter().copied().map(busy).collect()))
                .collect();
            let expected = crate::shares(&policy(name), &jobs);
            for shares in local_shares(&policy(name), &tables) {
                for (job, expected) in jobs.iter().zip(&expected) {
                    near(shares[&job.id], *expected);
                }
            }
        }
    }

    /// User 1 has job 1 only on server 1 and job 2 on both; user 2 has job 3 on both. Each user is due
    /// one server.
    #[test]
    fn users_get_their_parts_over_all_servers() {
        let (one, two, three) = (Job::new(1).user(1), Job::new(2).user(1), Job::new(3).user(2));
        let tables = [
            table(1, vec![busy(one), busy(two), busy(three)]),
            table(2, vec![busy(two), busy(three)]),
        ];
        let shares = local_shares(&policy("user-then-job-fair"), &tables);
        near(shares[0][&3] + shares[1].get(&3).copied().unwrap_or(0.0), 1.0);
        // Within user 1 both get half a server.
        near(shares[0][&1], 0.5);
    }

    /// Five users on two servers, 0.4 servers for each. User 1's job 1 (9 nodes) shares its only server with
    /// three other users, which cannot give all four what they are due: by budgets alone it gets
    /// 0.36 / 1.56 = 0.23, and job 2 (1 node) 0.04 / 0.44 = 0.09. Job 2 makes up for what job 1 lacks.
    #[test]
    fn what_a_crowded_server_denies_goes_to_the_users_other_job() {
        let (one, two) = (Job::new(1).user(1).size(9), Job::new(2).user(1));
        let rival = Job::new(3).user(2);
        let mut first = vec![busy(one)];
        first.extend((10u32..13).map(|id| busy(Job::new(id.into()).user(id))));
        let tables = [table(1, first), table(2, vec![busy(two), busy(rival)])];
        let shares = local_shares(&policy("user-then-size-fair"), &tables);
        near(shares[0][&1], 0.36 / 1.56);
        near(shares[0][&1] + shares[1][&2], 0.4);
    }

    #[test]
    fn a_job_that_wants_little_leaves_the_rest() {
        let (one, two) = (Job::new(1), Job::new(2));
        let little = JobUse {
            job: one,
            served: 8,
            queued: 0,
        }; // of 100: it wants no more than 10
        let shares = local_shares(
            &policy("job-fair"),
            &[
                table(1, vec![little, busy(two)]),
                table(2, vec![busy(one), busy(two)]),
            ],
        );
        // 100 each are possible: job 1 gets 10 on server 1 and 90 of 100 on server 2.
        assert!(shares[1][&1] > 0.85, "{shares:?}");
    }

    #[test]
    fn idle_jobs_and_empty_tables_are_nothing() {
        let idle = JobUse {
            job: Job::new(1),
            served: 0,
            queued: 0,
        };
        let shares = local_shares(&policy("size-fair"), &[table(1, vec![idle, busy(Job::new(2))])]);
        assert_eq!(shares[0].len(), 1);
        assert_eq!(shares[0][&2], 1.0);
        assert!(local_shares(&policy("size-fair"), &[]).is_empty());
        assert!(local_shares(&policy("user-fair"), &[table(1, vec![])])[0].is_empty());
    }
}
