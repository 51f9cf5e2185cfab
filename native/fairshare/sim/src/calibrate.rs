//! Fits the model to measured throughputs, and predicts others.
//!
//! Fitted are the bandwidth of a server, its overhead for a request (where the measurements have requests of
//! several sizes), and the number of pieces that a process's file lies in (where they have several
//! servers). The last one stands for how unevenly files land on servers: with few pieces some servers get
//! far more than others, and a run lasts as long as the fullest one. What is left is a model with one parameter for
//! contention; it knows nothing of the network between the racks.

use serde::{Deserialize, Serialize};

use crate::config::{Config, JobSpec, Link, Operation, Placement, Server};
use crate::simulate::simulate;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub measurements: Vec<Setup>,
    #[serde(default)]
    pub predict: Vec<Setup>,
    /// Where the search begins; what is not fitted stays.
    #[serde(default)]
    pub server: Server,
    #[serde(default)]
    pub link: Link,
    /// Simulations of each measured setup on several servers, with different placements; few of them do
    /// not tell one number of pieces from the next.
    #[serde(default = "twenty")]
    pub repeats: u32,
}

fn twenty() -> u32 {
    20
}

/// Predictions are of many servers, where placements differ less from each other.
const PREDICTED: u32 = 3;

/// One run: processes write (or read) a file each; its throughput is all bytes over the time of the last.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    pub servers: u32,
    /// Compute nodes; as many as servers where it is not said.
    #[serde(default)]
    pub nodes: Option<u32>,
    #[serde(default = "eight")]
    pub processes_per_node: u32,
    #[serde(default = "mebibyte")]
    pub size: u64,
    #[serde(default = "write")]
    pub operation: Operation,
    #[serde(default = "gigabyte")]
    pub bytes_per_process: u64,
    /// Measured, bytes per second.
    #[serde(default)]
    pub throughput: Option<f64>,
}

fn eight() -> u32 {
    8
}
fn mebibyte() -> u64 {
    1 << 20
}
fn gigabyte() -> u64 {
    1_000_000_000
}
fn write() -> Operation {
    Operation::Write
}

#[derive(Serialize)]
pub struct Fit {
    pub origin: &'static str,
    pub server: Server,
    pub link: Link,
    pub pieces: u32,
    /// The least and the greatest number of pieces that the measurements on several servers leave possible:
    /// each of these lies among the middle 80 % of the repeats.
    pub plausible_pieces: [u32; 2],
    /// Which parameters the measurements decided.
    pub fitted: Vec<&'static str>,
    /// Root of the mean squared relative error over the measurements.
    pub error: f64,
    pub measurements: Vec<Simulated>,
    pub predictions: Vec<Simulated>,
}

#[derive(Serialize)]
pub struct Simulated {
    #[serde(flatten)]
    pub setup: Setup,
    /// Mean, least and greatest of the repeats, bytes per second.
    pub simulated: f64,
    pub least: f64,
    pub greatest: f64,
    /// Means with the plausible numbers of pieces, from the least to the greatest throughput.
    pub plausible: [f64; 2],
    /// Against as many times what one server gives here.
    pub efficiency: f64,
}

#[derive(Clone, Copy)]
struct Model {
    server: Server,
    link: Link,
    pieces: u32,
    repeats: u32,
}

const PIECES: [u32; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 32];

pub fn calibrate(task: &Task) -> Result<Fit, String> {
    if task.measurements.is_empty() {
        return Err("measurements: there is none to fit to".into());
    }
    if !(1..=100).contains(&task.repeats) {
        return Err("repeats: must lie between 1 and 100".into());
    }
    for (place, setup) in task.measurements.iter().enumerate() {
        if !setup
            .throughput
            .is_some_and(|value| value.is_finite() && value > 0.0)
        {
            return Err(format!(
                "measurements[{place}].throughput: must be a number of bytes per second"
            ));
        }
    }
    let single: Vec<&Setup> = task
        .measurements
        .iter()
        .filter(|setup| setup.servers == 1)
        .collect();
    let several = task.measurements.iter().any(|setup| setup.servers > 1);
    let sizes = single.iter().any(|setup| setup.size != single[0].size);
    let mut fitted = vec!["server.bandwidth"];
    if sizes {
        fitted.push("server.overhead_s");
    }
    if several {
        fitted.push("pieces");
    }
    let mut best: Option<(f64, Model)> = None;
    let mut plausible = Vec::new();
    for pieces in if several { &PIECES[..] } else { &PIECES[..1] } {
        let mut model = Model {
            server: task.server,
            link: task.link,
            pieces: *pieces,
            repeats: task.repeats,
        };
        let fitted = fit(&mut model, &task.measurements, sizes)?;
        if fitted.possible {
            plausible.push(model);
        }
        if best.as_ref().is_none_or(|(least, _)| fitted.error < *least) {
            best = Some((fitted.error, model));
        }
    }
    let (error, model) = best.expect("at least one number of pieces was tried");
    let (low, high) = match plausible[..] {
        [] => (model, model),
        [only] => (only, only),
        [low, .., high] => (low, high),
    };
    let alone = Setup {
        servers: 1,
        nodes: None,
        throughput: None,
        ..task.measurements[0].clone()
    };
    let one = run(&model, &alone)?.mean();
    let answer = |setups: &[Setup], repeats: u32| -> Result<Vec<Simulated>, String> {
        let with = |model: Model| Model { repeats, ..model };
        let models = [with(model), with(low), with(high)];
        setups
            .iter()
            .map(|setup| simulated(&models, setup, one))
            .collect()
    };
    Ok(Fit {
        origin: "simulated",
        server: model.server,
        link: model.link,
        pieces: model.pieces,
        plausible_pieces: [low.pieces, high.pieces],
        fitted,
        error,
        measurements: answer(&task.measurements, task.repeats)?,
        predictions: answer(&task.predict, task.repeats.min(PREDICTED))?,
    })
}

/// `models`: the best one, and those with the least and the greatest plausible number of pieces.
fn simulated(models: &[Model; 3], setup: &Setup, one: f64) -> Result<Simulated, String> {
    let best = run(&models[0], setup)?;
    let mut means = [best.mean(); 3];
    for (mean, model) in means.iter_mut().zip(models).skip(1) {
        if setup.servers > 1 && model.pieces != models[0].pieces {
            *mean = run(model, setup)?.mean();
        }
    }
    means.sort_by(f64::total_cmp);
    Ok(Simulated {
        setup: setup.clone(),
        simulated: best.mean(),
        least: best.at(0.0),
        greatest: best.at(1.0),
        plausible: [means[0], means[2]],
        efficiency: best.mean() / (one * f64::from(setup.servers)),
    })
}

struct Fitted {
    error: f64,
    /// Whether each measurement on several servers lies among what the repeats give.
    possible: bool,
}

/// Finds bandwidth (and overhead) by turns.
fn fit(model: &mut Model, all: &[Setup], sizes: bool) -> Result<Fitted, String> {
    // One server decides these alone, where it was measured: placement does not blur it, and it is quick.
    let single: Vec<Setup> = all.iter().filter(|setup| setup.servers == 1).cloned().collect();
    let measurements = if single.is_empty() { all } else { &single[..] };
    for _ in 0..if sizes { 4 } else { 1 } {
        let guess = model.server.bandwidth;
        model.server.bandwidth = least(guess / 8.0, guess * 8.0, |bandwidth| {
            let mut model = *model;
            model.server.bandwidth = bandwidth;
            error(&model, measurements)
        })?;
        if sizes {
            let guess = model.server.overhead_s.max(1e-7);
            model.server.overhead_s = least(guess / 50.0, guess * 50.0, |overhead| {
                let mut model = *model;
                model.server.overhead_s = overhead;
                error(&model, measurements)
            })?;
        }
    }
    let (mut sum, mut possible) = (0.0, true);
    for setup in all {
        let (throughputs, measured) = (run(model, setup)?, setup.throughput.unwrap_or(f64::NAN));
        sum += (throughputs.mean() / measured).ln().powi(2);
        if setup.servers > 1 {
            possible &= (throughputs.at(0.1)..=throughputs.at(0.9)).contains(&measured);
        }
    }
    Ok(Fitted {
        error: (sum / all.len() as f64).sqrt(),
        possible,
    })
}

/// The place of the least value between two bounds, by golden section on a logarithmic scale.
fn least(low: f64, high: f64, value: impl Fn(f64) -> Result<f64, String>) -> Result<f64, String> {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (low.ln(), high.ln());
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (value(left.exp())?, value(right.exp())?);
    while high - low > 2e-3 {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = value(left.exp())?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = value(right.exp())?;
        }
    }
    Ok(((low + high) / 2.0).exp())
}

fn error(model: &Model, measurements: &[Setup]) -> Result<f64, String> {
    let mut sum = 0.0;
    for setup in measurements {
        let measured = setup.throughput.unwrap_or(f64::NAN);
        sum += (run(model, setup)?.mean() / measured).ln().powi(2);
    }
    Ok((sum / measurements.len() as f64).sqrt())
}

/// Throughputs of the repeats in ascending order, bytes per second; at least one.
struct Throughputs(Vec<f64>);

impl Throughputs {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The value below which this fraction of the repeats lies.
    fn at(&self, fraction: f64) -> f64 {
        self.0[((self.0.len() - 1) as f64 * fraction).round() as usize]
    }
}

fn run(model: &Model, setup: &Setup) -> Result<Throughputs, String> {
    let mut all = Vec::new();
    // One server has one placement.
    for repeat in 0..if setup.servers > 1 { model.repeats } else { 1 } {
        let config = config(model, setup, repeat.into());
        config.check()?;
        let outcome = simulate(&config)?;
        if outcome.jobs[0].finished_s.is_none() {
            return Err(format!(
                "{} servers: the run did not end in {} s",
                setup.servers, config.duration_s
            ));
        }
        all.push(outcome.throughput);
    }
    all.sort_by(f64::total_cmp);
    Ok(Throughputs(all))
}

fn config(model: &Model, setup: &Setup, seed: u64) -> Config {
    let nodes = setup.nodes.unwrap_or(setup.servers);
    let bytes = setup.bytes_per_process.max(1);
    let all = bytes as f64 * f64::from(nodes) * f64::from(setup.processes_per_node);
    let requests = all / setup.size.max(1) as f64;
    // Generous: as if one server did it all, one request after another.
    let duration = 1.0 + 20.0 * (all / model.server.bandwidth + requests * (model.server.overhead_s + 1e-4));
    Config {
        seed,
        servers: setup.servers,
        duration_s: duration.min(1e6),
        interval_s: duration.min(1e6),
        policy: "job-fair".into(),
        server: model.server,
        link: model.link,
        jobs: vec![JobSpec {
            id: 1,
            name: None,
            user: 0,
            group: 0,
            priority: 1,
            nodes,
            processes_per_node: setup.processes_per_node,
            start_s: 0.0,
            stop_s: None,
            operation: setup.operation,
            size: setup.size,
            depth: 1,
            think_s: 0.0,
            file_size: setup.size,
            bytes_per_cycle: Some(bytes),
            compute_s: 0.0,
            cycles: Some(1),
            pieces: model.pieces,
            placement: Placement::Hash,
            servers: None,
        }],
        ..Config::default()
    }
}
