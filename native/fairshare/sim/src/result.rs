//! What a simulation says: totals, and the shares in each phase, in which the same jobs are at work.

use policy::{shares, Job, Nanos, Policy};
use serde::Serialize;

use crate::config::Config;
use crate::server::nanos;
use crate::world::World;

/// A job's share may differ so much from what it is entitled to and still be fair.
const TOLERANCE: f64 = 0.05;

#[derive(Serialize)]
pub struct Outcome {
    /// Always "simulated".
    pub origin: &'static str,
    pub policy: String,
    pub scheduler: String,
    pub servers: u32,
    pub processes: u64,
    /// Simulated until then.
    pub end_s: f64,
    /// Bytes per second of all jobs, from the first start to the end.
    pub throughput: f64,
    pub events: u64,
    pub jobs: Vec<JobOutcome>,
    pub phases: Vec<Phase>,
    pub series: Vec<Interval>,
    /// What the reader should know before trusting a number.
    pub notes: Vec<String>,
}

#[derive(Serialize)]
pub struct JobOutcome {
    pub id: u64,
    pub name: String,
    pub bytes: u64,
    pub requests: u64,
    /// Bytes per second, and requests per second, from its start to its end.
    pub throughput: f64,
    pub request_rate: f64,
    /// Mean time from sending a request to its answer.
    pub latency_s: Option<f64>,
    /// When its last cycle was done; null without cycles, or if it was not.
    pub finished_s: Option<f64>,
}

/// A time in which no job begins or ends.
#[derive(Serialize)]
pub struct Phase {
    pub begin_s: f64,
    pub end_s: f64,
    pub throughput: f64,
    /// From the beginning to the first interval from which two in a row are fair (all jobs within the
    /// tolerance of their shares); null if there is none, or if a job is alone.
    pub time_to_fairness_s: Option<f64>,
    pub jobs: Vec<PhaseJob>,
}

#[derive(Serialize)]
pub struct PhaseJob {
    pub id: u64,
    pub name: String,
    /// None under fifo, which promises nothing.
    pub entitled: Option<f64>,
    pub share: f64,
    /// Mean, median and standard deviation over the whole intervals in the phase, bytes per second.
    pub throughput: f64,
    pub median: f64,
    pub standard_deviation: Option<f64>,
    /// Of its share in the intervals: without what all jobs together go up and down.
    pub share_deviation: Option<f64>,
}

#[derive(Serialize)]
pub struct Interval {
    pub time_s: f64,
    pub length_s: f64,
    pub job: u64,
    pub throughput: f64,
}

pub fn outcome(config: &Config, world: &World) -> Outcome {
    let end = if world.clients.jobs.iter().all(|job| job.finished.is_some()) {
        world.now
    } else {
        nanos(config.duration_s)
    };
    let spans = spans(config, world, end);
    let phases = phases(config, world, &spans, end);
    let first = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let bytes: u64 = world.clients.jobs.iter().map(|job| job.bytes).sum();
    let jobs = world
        .clients
        .jobs
        .iter()
        .zip(&spans)
        .map(|(job, &(begin, until))| {
            let seconds = seconds(until.saturating_sub(begin));
            JobOutcome {
                id: job.spec.id,
                name: name(job.spec.name.as_deref(), job.spec.id),
                bytes: job.bytes,
                requests: job.requests,
                throughput: per(job.bytes as f64, seconds),
                request_rate: per(job.requests as f64, seconds),
                latency_s: (job.requests > 0).then(|| job.waited as f64 / 1e9 / job.requests as f64),
                finished_s: job.finished.map(self::seconds),
            }
        });
    Outcome {
        origin: "simulated",
        policy: config
            .policy()
            .map_or_else(|_| config.policy.clone(), |policy| policy.to_string()),
        // Under fifo every scheduler is first in, first out.
        scheduler: if config.policy().is_ok_and(|policy| policy.is_fifo()) {
            "fifo".into()
        } else {
            config.scheduler.clone()
        },
        servers: config.servers,
        processes: world.clients.processes.len() as u64,
        end_s: seconds(end),
        throughput: per(bytes as f64, seconds(end.saturating_sub(first))),
        events: world.events.made(),
        jobs: jobs.collect(),
        notes: notes(config, &phases),
        phases,
        series: series(config, world, end),
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

fn per(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        amount / seconds
    } else {
        0.0
    }
}

pub(crate) fn name(given: Option<&str>, id: u64) -> String {
    given.map_or_else(|| format!("job {id}"), str::to_owned)
}

/// Begin and end of each job.
fn spans(config: &Config, world: &World, end: Nanos) -> Vec<(Nanos, Nanos)> {
    let jobs = config.jobs.iter().zip(&world.clients.jobs);
    jobs.map(|(spec, job)| {
        let stop = spec.stop_s.map_or(end, nanos);
        (
            nanos(spec.start_s).min(end),
            job.finished.unwrap_or(end).min(stop).min(end),
        )
    })
    .collect()
}

fn phases(config: &Config, world: &World, spans: &[(Nanos, Nanos)], end: Nanos) -> Vec<Phase> {
    let mut edges: Vec<Nanos> = spans.iter().flat_map(|&(begin, until)| [begin, until]).collect();
    edges.push(end);
    edges.sort_unstable();
    edges.dedup();
    let policy = config.policy().unwrap_or(Policy::FIFO);
    let mut phases = Vec::new();
    for edge in edges.windows(2) {
        let (begin, until) = (edge[0], edge[1]);
        let active: Vec<usize> = (0..spans.len())
            .filter(|&job| spans[job].0 <= begin && spans[job].1 >= until)
            .collect();
        let whole: Vec<usize> = (0..world.series.intervals())
            .filter(|&place| {
                let (from, to) = world.series.bounds(place);
                from >= begin && to <= until
            })
            .collect();
        if !active.is_empty() && !whole.is_empty() {
            phases.push(phase(config, world, &policy, &active, &whole, (begin, until)));
        }
    }
    phases
}

fn phase(
    config: &Config,
    world: &World,
    policy: &Policy,
    active: &[usize],
    whole: &[usize],
    (begin, until): (Nanos, Nanos),
) -> Phase {
    let jobs: Vec<Job> = active.iter().map(|&job| config.jobs[job].job()).collect();
    let entitled = shares(policy, &jobs);
    // Jobs that move no bytes have shares in the time of the server, not in bytes.
    let totals: Vec<u64> = whole
        .iter()
        .map(|&place| active.iter().map(|&job| world.series.bytes(job, place)).sum())
        .collect();
    let all: u64 = totals.iter().sum();
    let fair = |at: usize| {
        active.iter().zip(&entitled).all(|(&job, entitled)| {
            let share = world.series.bytes(job, whole[at]) as f64 / totals[at].max(1) as f64;
            (share - entitled).abs() <= TOLERANCE
        })
    };
    let mut reached = None;
    if active.len() > 1 && !policy.is_fifo() {
        reached = (0..whole.len().saturating_sub(1)).find(|&at| fair(at) && fair(at + 1));
    }
    let length = seconds(world.series.bounds(whole[whole.len() - 1]).1 - world.series.bounds(whole[0]).0);
    let of_job = |(&job, &entitled): (&usize, &f64)| {
        let mut each: Vec<f64> = whole
            .iter()
            .map(|&place| world.series.throughput(job, place))
            .collect();
        let bytes: u64 = whole.iter().map(|&place| world.series.bytes(job, place)).sum();
        let of_total = whole
            .iter()
            .zip(&totals)
            .map(|(&place, &total)| world.series.bytes(job, place) as f64 / total.max(1) as f64);
        let (deviation, share_deviation) = (deviation(&each), deviation(&of_total.collect::<Vec<_>>()));
        each.sort_by(f64::total_cmp);
        PhaseJob {
            id: config.jobs[job].id,
            name: name(config.jobs[job].name.as_deref(), config.jobs[job].id),
            entitled: (!policy.is_fifo()).then_some(entitled),
            share: bytes as f64 / all.max(1) as f64,
            throughput: per(bytes as f64, length),
            median: (each[(each.len() - 1) / 2] + each[each.len() / 2]) / 2.0,
            standard_deviation: deviation,
            share_deviation,
        }
    };
    Phase {
        begin_s: seconds(begin),
        end_s: seconds(until),
        throughput: per(all as f64, length),
        time_to_fairness_s: reached.map(|at| seconds(world.series.bounds(whole[at]).0.saturating_sub(begin))),
        jobs: active.iter().zip(&entitled).map(of_job).collect(),
    }
}

/// Standard deviation of a sample; None for a single value.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

fn series(config: &Config, world: &World, end: Nanos) -> Vec<Interval> {
    let mut all = Vec::new();
    for place in 0..world.series.intervals() {
        let (begin, until) = world.series.bounds(place);
        if begin >= end {
            break;
        }
        for (job, spec) in config.jobs.iter().enumerate() {
            all.push(Interval {
                time_s: seconds(begin),
                length_s: seconds(until - begin),
                job: spec.id,
                throughput: world.series.throughput(job, place),
            });
        }
    }
    all
}

fn notes(config: &Config, phases: &[Phase]) -> Vec<String> {
    let mut notes = Vec::new();
    if phases
        .iter()
        .any(|phase| phase.jobs.len() > 1 && phase.jobs[0].standard_deviation.is_none())
    {
        notes.push("a phase holds one whole interval: no standard deviation; shorten interval_s".into());
    }
    if config
        .jobs
        .iter()
        .any(|job| job.operation == crate::config::Operation::Stat)
    {
        notes.push("a job moves no bytes: its share counts bytes, see its request_rate".into());
    }
    for job in phases.iter().flat_map(|phase| &phase.jobs) {
        let Some(entitled) = job.entitled else {
            continue;
        };
        if job.share < entitled - TOLERANCE && config.scheduler != "fifo" {
            notes.push(format!(
                "{} got {:.1} % of {:.1} %: it asked for less, its files lie on few servers (see lambda_s), \
                 or the scheduler is not fair to it",
                job.name,
                100.0 * job.share,
                100.0 * entitled
            ));
        }
    }
    notes.dedup();
    notes
}
