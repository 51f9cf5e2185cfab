//! The paper's experiments, simulated: ratios, not absolute numbers.

use fairshare_sim::{simulate, Config, Outcome};
use serde_json::{json, Value};

fn run(document: Value) -> Outcome {
    let config: Config = serde_json::from_value(document).unwrap();
    simulate(&config).unwrap()
}

/// A job of the paper's benchmark: 56 processes on each node, which write 10 MB and read it back.
fn job(id: u64, nodes: u32, more: Value) -> Value {
    let mut job = json!({"id": id, "nodes": nodes, "processes_per_node": 56, "operation": "write-read"});
    for (key, value) in more.as_object().unwrap() {
        job[key] = value.clone();
    }
    job
}

fn shares(outcome: &Outcome, phase: usize) -> Vec<f64> {
    outcome.phases[phase].jobs.iter().map(|job| job.share).collect()
}

fn near(values: &[f64], expected: &[f64], allowed: f64) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!(
            (value - expected).abs() <= allowed,
            "{values:?} instead of {expected:?}"
        );
    }
}

/// Figure 8(a): 4 nodes against 1. The paper has 17.4 and 4.4 GB/s, 3.96 to 1.
#[test]
fn size_fair_gives_four_to_one_and_loses_nothing() {
    for scheduler in ["stride", "token"] {
        let outcome = run(json!({
            "policy": "size-fair", "scheduler": scheduler, "duration_s": 6, "interval_s": 0.25,
            "jobs": [job(1, 4, json!({})), job(2, 1, json!({"start_s": 1.5, "stop_s": 4.5}))],
        }));
        assert_eq!(outcome.origin, "simulated");
        near(&shares(&outcome, 1), &[0.8, 0.2], 0.004);
        let [alone, both] = [outcome.phases[0].throughput, outcome.phases[1].throughput];
        assert!((both / alone - 1.0).abs() < 0.05, "{alone} {both}");
        // Opportunity fairness: alone, the job gets the whole server.
        assert!(alone > 0.9 * 2.0 * 11.7e9);
        assert_eq!(outcome.phases[1].time_to_fairness_s, Some(0.0));
    }
}

/// Figure 8(b) and (c): 10.6 GB/s each; two jobs of user A against one of user B, 10.85 to 10.80.
#[test]
fn job_fair_and_user_fair_split_in_halves() {
    let outcome = run(json!({
        "policy": "job-fair", "duration_s": 3, "jobs": [job(1, 4, json!({})), job(2, 1, json!({}))],
    }));
    near(&shares(&outcome, 0), &[0.5, 0.5], 0.004);
    let outcome = run(json!({
        "policy": "user-fair", "duration_s": 3, "jobs": [
            job(1, 2, json!({"user": 1})), job(2, 2, json!({"user": 1})), job(3, 1, json!({"user": 2})),
        ],
    }));
    near(&shares(&outcome, 0), &[0.25, 0.25, 0.5], 0.004);
}

/// Figure 9: users in halves, within user 1 sizes 1:2 (the paper has 3.4:6.7), within user 2 4:6.
#[test]
fn user_then_size_fair_holds_on_both_levels() {
    let outcome = run(json!({
        "policy": "user-then-size-fair", "duration_s": 3, "jobs": [
            job(1, 1, json!({"user": 1})), job(2, 2, json!({"user": 1})),
            job(3, 4, json!({"user": 2})), job(4, 6, json!({"user": 2})),
        ],
    }));
    near(&shares(&outcome, 0), &[1.0 / 6.0, 1.0 / 3.0, 0.2, 0.3], 0.004);
}

fn figure_10(scheduler: &str, queues: u32, seed: u64) -> Vec<f64> {
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
    let jobs: Vec<Value> = (1u64..)
        .zip(sizes)
        .map(|(id, (group, user, nodes))| job(id, nodes, json!({"group": group, "user": user})))
        .collect();
    shares(
        &run(json!({
            "policy": "group-user-size-fair", "scheduler": scheduler, "server": {"queues": queues},
            "cost": "request", "seed": seed, "duration_s": 4, "jobs": jobs,
        })),
        0,
    )
}

/// Figures 10 and 11. The paper's groups get 46 % and 54 %: its workers have private queues, in which the
/// one job of group 1 (56 processes over 16 queues) is often not there when it is drawn. With one
/// scheduler a server the groups are in halves.
#[test]
fn private_queues_explain_46_to_54_and_one_scheduler_mends_it() {
    let one = figure_10("stride", 1, 1);
    near(&one[..1], &[0.5], 0.004);
    near(&one[1..4], &[2.0 / 42.0, 3.0 / 42.0, 2.0 / 42.0], 0.002);
    near(&one[4..], &[0.1, 2.0 / 30.0, 1.0 / 18.0, 2.0 / 18.0], 0.002);
    near(&figure_10("token", 1, 1)[..1], &[0.5], 0.01);
    let private: f64 = (1..5).map(|seed| figure_10("token", 16, seed)[0]).sum::<f64>() / 4.0;
    assert!((0.45..0.49).contains(&private), "{private}");
}

/// Section 5.4, without the handicaps: fair GIFT and TBF lose nothing; as published GIFT is late by an epoch
/// and TBF stays below its configured rate.
#[test]
fn gift_and_tbf_as_published_and_fair() {
    let of = |scheduler: &str| {
        run(json!({
            "policy": "job-fair", "scheduler": scheduler, "duration_s": 6, "interval_s": 0.25,
            "jobs": [job(1, 1, json!({})), job(2, 1, json!({"start_s": 1.6, "stop_s": 4.6}))],
        }))
    };
    let stride = of("stride");
    for fair in ["gift", "tbf"] {
        let outcome = of(fair);
        assert!(
            (outcome.throughput / stride.throughput - 1.0).abs() < 0.02,
            "{fair}"
        );
        near(&shares(&outcome, 1), &[0.5, 0.5], 0.02);
    }
    let late = of("gift-published").phases[1].time_to_fairness_s.unwrap();
    assert!(late >= 0.25 && stride.phases[1].time_to_fairness_s < Some(late));
    let capped = of("tbf-published").phases[1].throughput;
    // The rate holds for what requests cost: 1 MiB and 32 KiB for the operation.
    assert!(
        (capped / (0.88 * 2.0 * 11.7e9 * 32.0 / 33.0) - 1.0).abs() < 0.01,
        "{capped}"
    );
    let deviation = |outcome: &Outcome| outcome.phases[1].jobs[1].standard_deviation.unwrap();
    assert!(deviation(&stride) < deviation(&of("token")));
    assert!(deviation(&stride) < deviation(&of("gift")));
}

/// Section 3.1 and figure 5, section 5.6: job 1 on both servers, jobs 2 and 3 on one each. Without an exchange
/// job 1 gets two thirds; with it half, from the second interval of length lambda on.
#[test]
fn lambda_delayed_fairness() {
    let of = |lambda: Option<f64>, interval: f64| {
        run(json!({
            "policy": "size-fair", "servers": 2, "duration_s": 2, "lambda_s": lambda, "interval_s": interval,
            "jobs": [
                job(1, 2, json!({"pieces": 2, "placement": "balanced"})),
                job(2, 1, json!({"servers": [0]})),
                job(3, 1, json!({"servers": [1]})),
            ],
        }))
    };
    near(
        &shares(&of(None, 0.1), 0),
        &[2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0],
        0.01,
    );
    for lambda in [0.05, 0.2, 0.5] {
        let outcome = of(Some(lambda), lambda);
        let reached = outcome.phases[0].time_to_fairness_s.unwrap();
        assert!((reached - lambda).abs() < 1e-9, "{lambda}: {reached}"); // the second interval begins at lambda
    }
}

/// Section 5.5: an application that computes and writes by turns, next to a benchmark on one node.
#[test]
fn fairness_bounds_the_slowdown_of_an_application() {
    let application = json!({
        "id": 1, "nodes": 16, "processes_per_node": 8, "operation": "write",
        "bytes_per_cycle": 16 << 20, "compute_s": 0.2, "cycles": 5,
    });
    let time = |scheduler: &str, rival: bool| {
        let mut jobs = vec![application.clone()];
        if rival {
            jobs.push(
                json!({"id": 2, "nodes": 1, "processes_per_node": 56, "operation": "write", "depth": 32}),
            );
        }
        let outcome = run(json!({
            "policy": "size-fair", "scheduler": scheduler, "duration_s": 60, "jobs": jobs,
        }));
        outcome.jobs[0].finished_s.unwrap()
    };
    let alone = time("stride", false);
    let slowdown = |scheduler| time(scheduler, true) / alone - 1.0;
    // Its part of the server is 16/17, so its I/O can take 1/16 longer; first in, first out gives it what
    // its 128 requests are among 1920.
    assert!(slowdown("stride") < 1.0 / 16.0, "{}", slowdown("stride"));
    assert!(slowdown("fifo") > 1.0, "{}", slowdown("fifo"));
}

/// First in, first out serves a write for every 512 stats, as they queue; job-fair one for every 33, as
/// they cost.
#[test]
fn a_stat_flood_does_not_stop_the_writers() {
    let share = |policy: &str| {
        let outcome = run(json!({
            "policy": policy, "duration_s": 2, "server": {"overhead_s": 1e-4}, "jobs": [
                {"id": 1, "processes_per_node": 56, "depth": 512, "operation": "stat"},
                {"id": 2, "processes_per_node": 56, "operation": "write"},
            ],
        }));
        outcome.jobs[1].throughput
    };
    assert!(
        share("job-fair") > 5.0 * share("fifo"),
        "{} {}",
        share("job-fair"),
        share("fifo")
    );
}

#[test]
fn same_document_same_answer() {
    let document = json!({
        "scheduler": "token", "servers": 3, "duration_s": 0.5, "lambda_s": 0.1, "interval_s": 0.1,
        "jobs": [job(1, 2, json!({"pieces": 2})), job(2, 1, json!({}))],
    });
    let answer = || serde_json::to_string(&run(document.clone())).unwrap();
    assert_eq!(answer(), answer());
}

/// What clients count and what the intervals count is the same, and all work is done exactly once.
#[test]
fn nothing_is_lost() {
    for scheduler in [
        "stride",
        "token",
        "gift",
        "gift-published",
        "tbf",
        "tbf-published",
        "fifo",
    ] {
        for lambda in [None, Some(0.05)] {
            let outcome = run(json!({
                "scheduler": scheduler, "servers": 3, "duration_s": 30, "lambda_s": lambda,
                "server": {"queues": 2, "workers": 4}, "jobs": [
                    {"id": 1, "nodes": 2, "operation": "write", "bytes_per_cycle": 10_000_000, "cycles": 3,
                     "pieces": 3, "depth": 4, "compute_s": 0.01},
                    {"id": 2, "operation": "read", "bytes_per_cycle": 5_000_001, "cycles": 2, "think_s": 1e-4},
                ],
            }));
            // 16 processes, 3 cycles of 10 MB; 8 processes, 2 cycles of 5,000,001 bytes.
            assert_eq!(outcome.jobs[0].bytes, 480_000_000, "{scheduler}");
            assert_eq!(outcome.jobs[1].bytes, 80_000_016, "{scheduler}");
            assert!(
                outcome.jobs.iter().all(|job| job.finished_s.is_some()),
                "{scheduler}"
            );
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (document, word) in [
        (json!({"jobs": []}), "jobs"),
        (json!({"jobs": [{"id": 1}], "policy": "sise-fair"}), "size-fair"),
        (json!({"jobs": [{"id": 1}], "scheduler": "strid"}), "stride"),
        (json!({"jobs": [{"id": 1}, {"id": 1}]}), "twice"),
        (json!({"jobs": [{"id": 1, "nodes": 0}]}), "nodes"),
        (json!({"jobs": [{"id": 1, "servers": [1]}]}), "servers"),
        (json!({"jobs": [{"id": 1}], "interval_s": 1e-9}), "interval_s"),
        (
            json!({"jobs": [{"id": 1}], "duration_s": 1e6, "interval_s": 1e-3}),
            "intervals",
        ),
        (json!({"jobs": [{"id": 1, "compute_s": 1.0}]}), "bytes_per_cycle"),
        (
            json!({"jobs": [{"id": 1, "start_s": 2.0, "stop_s": 1.0}]}),
            "stop_s",
        ),
        (
            json!({"jobs": [{"id": 1, "nodes": 1000000, "processes_per_node": 10000}]}),
            "processes",
        ),
        (json!({"jobs": [{"id": 1}], "server": {"queues": 17}}), "queues"),
        (
            json!({"jobs": [{"id": 1}], "cost": "request", "scheduler": "tbf-published"}),
            "cost",
        ),
    ] {
        let config: Config = serde_json::from_value(document).unwrap();
        let error = simulate(&config).err().expect("it is refused");
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    }
    assert!(serde_json::from_value::<Config>(json!({"polici": "fifo"})).is_err());
}
