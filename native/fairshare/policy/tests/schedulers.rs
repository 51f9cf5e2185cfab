//! What every scheduler promises, on random jobs, policies and sequences of calls.

use std::collections::{HashMap, HashSet};

use policy::random::Random;
use policy::{shares, Arbiter, Job, JobId, LocalShares, Next, Policy, Request, SchedulerKind, Settings};

const MIB: u64 = 1 << 20;
const POLICIES: [&str; 6] = [
    "job-fair",
    "size-fair",
    "user-fair",
    "user-then-size-fair",
    "group-user-size-fair",
    "priority-group-user-size-fair",
];
/// Those that follow the policy in cost; the published GIFT counts requests, FIFO nothing.
const FAIR: [SchedulerKind; 4] = [
    SchedulerKind::Stride,
    SchedulerKind::Token,
    SchedulerKind::Gift,
    SchedulerKind::Tbf,
];

fn named(policy: &str) -> Policy {
    Policy::parse(policy).unwrap()
}

fn random_jobs(random: &mut Random, most: u64) -> Vec<Job> {
    (0..2 + random.below(most - 1))
        .map(|id| {
            Job::new(100 + id)
                .group(random.below(3) as u32)
                .user(random.below(4) as u32)
                .size(1 + random.below(8) as u32)
                .priority(1 + random.below(3) as u32)
        })
        .collect()
}

fn arbiter(kind: SchedulerKind, policy: &str, jobs: &[Job]) -> Arbiter {
    let mut arbiter = Arbiter::new(kind, &named(policy), &Settings::default());
    for job in jobs {
        arbiter.add_job(*job);
    }
    arbiter
}

fn serve(arbiter: &mut Arbiter, now: &mut u64) -> Request {
    for _ in 0..1_000_000 {
        match arbiter.next(*now) {
            Next::Serve(request) => return request,
            Next::WaitUntil(time) => {
                assert!(time > *now, "waiting for the past");
                *now = time;
            }
            Next::Empty => panic!("nothing is queued"),
        }
    }
    panic!("never serves");
}

/// Keeps `depth` requests of every job queued, serves `total` cost, returns the cost served by job.
fn backlogged(arbiter: &mut Arbiter, sizes: &HashMap<JobId, Vec<u64>>, total: u64) -> HashMap<JobId, f64> {
    let mut random = Random::new(9);
    let mut now = 0;
    let mut ids: Vec<_> = sizes.keys().copied().collect();
    ids.sort_unstable();
    let mut token = 0;
    let mut send = |arbiter: &mut Arbiter, job: JobId, now: u64| {
        let of = &sizes[&job];
        token += 1;
        let cost = of[random.below(of.len() as u64) as usize];
        arbiter.enqueue(job, cost, token, now).unwrap();
    };
    for &job in &ids {
        for _ in 0..3 {
            send(arbiter, job, now);
        }
    }
    let (mut served, mut sum) = (HashMap::new(), 0);
    while sum < total {
        let request = serve(arbiter, &mut now);
        now += request.cost / 10; // 10 GB/s
        sum += request.cost;
        *served.entry(request.job).or_insert(0.0) += request.cost as f64;
        send(arbiter, request.job, now);
        arbiter.complete(request.job, now);
    }
    served.values_mut().for_each(|cost| *cost /= sum as f64);
    served
}

/// Requests of 4 KiB against such of 1 MiB, and mixed ones: shares hold in bytes.
#[test]
fn backlogged_jobs_get_their_shares() {
    let mut random = Random::new(5);
    for round in 0..12 {
        let policy = POLICIES[round % POLICIES.len()];
        let jobs = random_jobs(&mut random, 9);
        let sizes: HashMap<_, _> = jobs
            .iter()
            .map(|job| {
                let of = match random.below(3) {
                    0 => vec![64 * 1024],
                    1 => vec![MIB],
                    _ => vec![64 * 1024, MIB, 4 * MIB],
                };
                (job.id, of)
            })
            .collect();
        let entitled = shares(&named(policy), &jobs);
        for kind in FAIR {
            let served = backlogged(&mut arbiter(kind, policy, &jobs), &sizes, 20_000 * MIB);
            // Random draws: some thousand requests of 4 MiB at the least, so parts of some percent.
            let drawn = matches!(kind, SchedulerKind::Token | SchedulerKind::Gift);
            let allowed = if drawn { 0.03 } else { 0.002 };
            for (job, entitled) in jobs.iter().zip(&entitled) {
                let got = served.get(&job.id).copied().unwrap_or(0.0);
                assert!(
                    (got - entitled).abs() < allowed,
                    "{kind} {policy}: {job:?} got {got}, is entitled to {entitled}"
                );
            }
        }
    }
}

/// At every moment, not only in the end: no job is further behind than one request a level and rival.
#[test]
fn stride_is_never_far_from_the_shares() {
    let jobs = [Job::new(1).size(4), Job::new(2).size(1)];
    let mut arbiter = arbiter(SchedulerKind::Stride, "size-fair", &jobs);
    for token in 0..2000 {
        arbiter.enqueue(1 + token % 2, 1, token, 0).unwrap();
    }
    let mut served = [0.0, 0.0];
    for all in 1..=1200 {
        served[serve(&mut arbiter, &mut 0).job as usize - 1] += 1.0;
        assert!((served[0] - 0.8 * f64::from(all)).abs() <= 1.0, "{served:?}");
    }
}

#[test]
fn stride_varies_less_than_tokens() {
    let deviation = |kind| {
        let jobs = [Job::new(1).size(4), Job::new(2).size(1)];
        let mut arbiter = arbiter(kind, "size-fair", &jobs);
        let mut token = 0;
        let mut parts = Vec::new();
        for _ in 0..200 {
            let mut part = 0.0;
            for _ in 0..500 {
                while arbiter.backlog_of(1) < 2 || arbiter.backlog_of(2) < 2 {
                    token += 1;
                    arbiter.enqueue(1 + token % 2, MIB, token, 0).unwrap();
                }
                part += f64::from(u8::from(serve(&mut arbiter, &mut 0).job == 2));
            }
            parts.push(part);
        }
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        (parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / parts.len() as f64).sqrt()
    };
    // A draw of 500 at 1/5 deviates by sqrt(500 * 0.2 * 0.8) = 8.9 requests; stride by at most one.
    let (stride, token) = (deviation(SchedulerKind::Stride), deviation(SchedulerKind::Token));
    assert!(stride <= 1.0, "{stride}");
    assert!((token - 8.9).abs() < 2.0, "{token}");
}

/// One worker; the client of job 2 has one request outstanding and sends the next when it is answered,
/// which is after the worker has taken another one. Job 1 has eight.
fn closed_loop(kind: SchedulerKind, settings: &Settings) -> f64 {
    let mut arbiter = Arbiter::new(kind, &named("job-fair"), settings);
    arbiter.add_job(Job::new(1));
    arbiter.add_job(Job::new(2));
    for token in 0..8 {
        arbiter.enqueue(1, MIB, token, 0).unwrap();
    }
    arbiter.enqueue(2, MIB, 8, 0).unwrap();
    let (mut now, mut second) = (0, 0);
    let mut answered: Option<JobId> = None;
    for _ in 0..4000 {
        let request = serve(&mut arbiter, &mut now);
        if let Some(job) = answered.replace(request.job) {
            arbiter.enqueue(job, MIB, 9, now + 10).unwrap();
        }
        now += 1000;
        arbiter.complete(request.job, now);
        second += u64::from(request.job == 2);
    }
    second as f64 / 4000.0
}

#[test]
fn one_request_outstanding_is_enough_for_half() {
    let settings = Settings::default();
    assert!((closed_loop(SchedulerKind::Stride, &settings) - 0.5).abs() < 0.001);
    // With the draw, job 2 loses half of the draws that it takes part in, and it misses the one right
    // after each of its answers: a third.
    assert!((closed_loop(SchedulerKind::Token, &settings) - 1.0 / 3.0).abs() < 0.03);
}

#[test]
fn a_job_that_comes_back_does_not_claim_the_past() {
    for kind in FAIR {
        let jobs = [Job::new(1), Job::new(2)];
        let mut arbiter = arbiter(kind, "job-fair", &jobs);
        let mut now = 0;
        for token in 0..20_000 {
            arbiter.enqueue(1, MIB, token, now).unwrap();
        }
        for _ in 0..10_000 {
            assert_eq!(serve(&mut arbiter, &mut now).job, 1); // all of it while job 2 is idle
            now += MIB / 10;
        }
        for token in 0..10_000 {
            arbiter.enqueue(2, MIB, token, now).unwrap();
        }
        // From now on halves. The most that job 2 may be ahead is its bucket (16 MiB, and as much of debt of
        // job 1) or credit (16 MiB), and the request that it is at.
        let mut ahead = 0i64;
        for round in 0..2000 {
            ahead += if serve(&mut arbiter, &mut now).job == 2 {
                1
            } else {
                -1
            };
            now += MIB / 10;
            let drawn = matches!(kind, SchedulerKind::Token | SchedulerKind::Gift);
            let allowed = 33 + if drawn { 200 } else { 0 };
            assert!(ahead.abs() <= allowed, "{kind}: {ahead} ahead after {round}");
        }
    }
}

/// The part of an idle job goes to its user's other job, not to the other user.
#[test]
fn what_is_idle_goes_to_the_nearest() {
    let jobs = [
        Job::new(1).user(1),
        Job::new(2).user(1),
        Job::new(3).user(2),
        Job::new(4).user(3),
    ];
    for kind in [SchedulerKind::Stride, SchedulerKind::Token] {
        let sizes = |ids: &[u64]| ids.iter().map(|&id| (id, vec![MIB])).collect::<HashMap<_, _>>();
        let mut all = arbiter(kind, "user-then-job-fair", &jobs);
        let served = backlogged(&mut all, &sizes(&[2, 3, 4]), 20_000 * MIB);
        assert!((served[&2] - 1.0 / 3.0).abs() < 0.02, "{kind}: {served:?}");
        // With user 2 idle its third goes to users 1 and 3 alike, and within user 1 in halves.
        let mut all = arbiter(kind, "user-then-job-fair", &jobs);
        let served = backlogged(&mut all, &sizes(&[1, 2, 4]), 20_000 * MIB);
        assert!((served[&4] - 0.5).abs() < 0.02 && (served[&1] - 0.25).abs() < 0.02);
    }
}

#[test]
fn local_shares_replace_the_policys() {
    let jobs = [Job::new(1).user(1), Job::new(2).user(1), Job::new(3).user(2)];
    let given = LocalShares::from([(1, 0.1), (2, 0.2), (3, 0.7)]);
    for kind in FAIR {
        let mut arbiter = arbiter(kind, "user-then-job-fair", &jobs);
        arbiter.set_local_shares(Some(&given));
        let sizes: HashMap<_, _> = jobs.iter().map(|job| (job.id, vec![MIB])).collect();
        let served = backlogged(&mut arbiter, &sizes, 20_000 * MIB);
        for (job, share) in &given {
            assert!((served[job] - share).abs() < 0.02, "{kind}: {served:?}");
        }
    }
}

#[test]
fn published_gift_makes_a_new_job_wait_for_the_epoch() {
    for (kind, published) in [(SchedulerKind::GiftPublished, true), (SchedulerKind::Gift, false)] {
        let mut arbiter = arbiter(kind, "job-fair", &[Job::new(1), Job::new(2)]);
        let epoch = Settings::default().epoch;
        arbiter.enqueue(1, MIB, 0, 0).unwrap();
        let mut now = 0;
        serve(&mut arbiter, &mut now); // as published not before the first epoch ends
        assert_eq!(now, if published { epoch } else { 0 });
        now += 1000;
        arbiter.enqueue(2, MIB, 1, now).unwrap();
        serve(&mut arbiter, &mut now);
        assert_eq!(now, if published { 2 * epoch } else { 1000 });
    }
}

#[test]
fn published_tbf_is_capped_by_its_rate() {
    for (kind, published) in [(SchedulerKind::TbfPublished, true), (SchedulerKind::Tbf, false)] {
        let settings = Settings {
            rate: 1e9,
            ..Settings::default()
        };
        let mut arbiter = Arbiter::new(kind, &named("job-fair"), &settings);
        arbiter.add_job(Job::new(1));
        arbiter.add_job(Job::new(2));
        let mut now = 0;
        for token in 0..1000 {
            arbiter.enqueue(1, MIB, token, now).unwrap();
        }
        for _ in 0..1000 {
            serve(&mut arbiter, &mut now); // the test's worker takes no time
        }
        // 1000 MiB at 1 GB/s; job 2's half fills its bucket of 16 MiB first and then flows over.
        let seconds = now as f64 / 1e9;
        let expected = if published { 1016.0 * MIB as f64 / 1e9 } else { 0.0 };
        assert!((seconds - expected).abs() < 0.002, "{kind}: {seconds}");
    }
}

#[test]
fn counting_requests_is_not_fair_in_bytes() {
    let jobs = [Job::new(1), Job::new(2)];
    let small_and_large = |by_request: bool| {
        let mut arbiter = arbiter(SchedulerKind::Token, "job-fair", &jobs);
        let mut bytes = [0u64; 2];
        for _ in 0..40_000 {
            for job in [1, 2] {
                while arbiter.backlog_of(job) < 2 {
                    let size = if job == 1 { 64 * 1024 } else { MIB };
                    arbiter
                        .enqueue(job, if by_request { 1 } else { size }, size, 0)
                        .unwrap();
                }
            }
            let request = serve(&mut arbiter, &mut 0);
            bytes[request.job as usize - 1] += request.token;
        }
        bytes[1] as f64 / bytes[0] as f64
    };
    assert!((small_and_large(true) / 16.0 - 1.0).abs() < 0.1); // 1 MiB for every 64 KiB
    assert!((small_and_large(false) - 1.0).abs() < 0.1);
}

/// Random calls on every kind: each token comes back exactly once, in order within its job, never of a
/// job that is gone, and the backlog is what was put in and not taken out.
#[test]
fn no_request_is_lost_or_doubled() {
    for (_, kind) in SchedulerKind::ALL {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let settings = Settings::default();
            let policy = named(POLICIES[random.below(6) as usize]);
            let mut arbiter = Arbiter::new(kind, &policy, &settings);
            let mut waiting: HashMap<JobId, Vec<u64>> = HashMap::new();
            let (mut now, mut token) = (0, 0);
            let mut seen = HashSet::new();
            for _ in 0..600 {
                now += random.below(2_000);
                let id = random.below(6);
                match random.below(16) {
                    0 | 1 => {
                        let mut job = random_jobs(&mut random, 2)[0];
                        job.id = id;
                        arbiter.add_job(job);
                        waiting.entry(id).or_default();
                    }
                    2 => {
                        let returned: Vec<u64> = arbiter
                            .remove_job(id)
                            .iter()
                            .map(|request| request.token)
                            .collect();
                        assert_eq!(returned, waiting.remove(&id).unwrap_or_default());
                    }
                    3 if random.below(4) == 0 => {
                        let shares = (0..6).map(|id| (id, random.unit() * 2.0 - 0.5)).collect();
                        arbiter.set_local_shares((random.below(2) == 0).then_some(&shares));
                    }
                    3 => {
                        let kind = SchedulerKind::ALL[random.below(7) as usize].1;
                        let other = named(POLICIES[random.below(6) as usize]);
                        let policy = if random.below(4) == 0 { Policy::FIFO } else { other };
                        arbiter.change(kind, &policy, &settings, now);
                    }
                    4..=9 => {
                        token += 1;
                        let known = waiting.get_mut(&id);
                        let cost = random.below(3 * MIB);
                        assert_eq!(arbiter.enqueue(id, cost, token, now).is_ok(), known.is_some());
                        if let Some(queue) = known {
                            queue.push(token);
                        }
                    }
                    _ => match arbiter.next(now) {
                        Next::Serve(request) => {
                            let queue = waiting.get_mut(&request.job).expect("a registered job");
                            assert_eq!(queue.remove(0), request.token);
                            assert!(seen.insert(request.token));
                            if random.below(4) > 0 {
                                arbiter.complete(request.job, now);
                            }
                        }
                        Next::WaitUntil(time) => assert!(time > now && arbiter.backlog() > 0),
                        Next::Empty => assert_eq!(arbiter.backlog(), 0),
                    },
                }
                let left: usize = waiting.values().map(Vec::len).sum();
                assert_eq!(arbiter.backlog(), left, "{kind} {seed}");
                for (job, queue) in &waiting {
                    assert_eq!(arbiter.backlog_of(*job), queue.len());
                }
            }
            while arbiter.backlog() > 0 {
                let request = serve(&mut arbiter, &mut now);
                assert_eq!(waiting.get_mut(&request.job).unwrap().remove(0), request.token);
            }
            assert!(waiting.values().all(Vec::is_empty));
        }
    }
}

/// Passes are shifted back long before they are so large that a request's cost is lost in them.
#[test]
fn stride_stays_exact_over_petabytes() {
    let jobs = [Job::new(1).size(3), Job::new(2).size(1)];
    let mut arbiter = arbiter(SchedulerKind::Stride, "size-fair", &jobs);
    let mut first = 0;
    for token in 0..100_000 {
        for job in [1, 2] {
            while arbiter.backlog_of(job) < 2 {
                arbiter.enqueue(job, 1 << 36, token, 0).unwrap();
            }
        }
        first += u64::from(serve(&mut arbiter, &mut 0).job == 1);
    }
    assert!((74_990..=75_010).contains(&first), "{first}");
}

#[test]
fn same_seed_same_order() {
    let order = |seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut arbiter = Arbiter::new(SchedulerKind::Token, &named("job-fair"), &settings);
        for id in 0..5 {
            arbiter.add_job(Job::new(id));
            for token in 0..50 {
                arbiter.enqueue(id, MIB, token, 0).unwrap();
            }
        }
        (0..250)
            .map(|_| serve(&mut arbiter, &mut 0).job)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

/// Whoever was charged for the time of a request lets others go first that ask one by one, and does not wait for
/// those that do not come back.
#[test]
fn who_is_ahead_waits_for_those_who_ask_again_in_a_moment() {
    let jobs = [Job::new(1).user(1), Job::new(2).user(2)];
    let mut arbiter = arbiter(SchedulerKind::Stride, "user-fair", &jobs);
    let mut now = 1_000_000_000;
    arbiter.enqueue(1, 1, 10, now).unwrap();
    assert_eq!(serve(&mut arbiter, &mut now).token, 10);
    arbiter.complete(1, now);
    arbiter.surcharge(1, 100 * MIB);
    for token in 11..15 {
        arbiter.enqueue(1, 1, token, now).unwrap();
    }
    for turn in 0..100 {
        arbiter.enqueue(2, MIB, turn + 100, now).unwrap();
        assert_eq!(serve(&mut arbiter, &mut now).token, turn + 100);
        arbiter.complete(2, now);
        now += 50_000; // until it asks again
        if turn < 90 {
            assert!(matches!(arbiter.next(now), Next::WaitUntil(when) if when > now));
        }
    }
    now += 1_000_000;
    assert_eq!(
        arbiter.next(now),
        Next::Serve(Request {
            job: 1,
            cost: 1,
            token: 11
        }),
        "nobody else asks"
    );
}
