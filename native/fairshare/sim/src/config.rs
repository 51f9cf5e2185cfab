//! What is simulated: the JSON document that comes in. Unknown keys are errors.
//!
//! Units: bytes, seconds, bytes per second.

use policy::{CostModel, Job, Policy, SchedulerKind};
use serde::{Deserialize, Serialize};

use crate::events::NUMBERS;

/// The whole document. Defaults are one server of the ThemisIO paper (section 5).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub seed: u64,
    /// Number of servers.
    pub servers: u32,
    pub duration_s: f64,
    /// Length of the intervals in which throughput is counted.
    pub interval_s: f64,
    pub policy: String,
    pub scheduler: String,
    pub cost: Cost,
    /// Time between two exchanges of job tables; null: each server knows its own jobs only.
    pub lambda_s: Option<f64>,
    pub server: Server,
    pub link: Link,
    pub jobs: Vec<JobSpec>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            seed: 1,
            servers: 1,
            duration_s: 10.0,
            interval_s: 1.0,
            policy: "size-fair".into(),
            scheduler: "stride".into(),
            cost: Cost::default(),
            lambda_s: None,
            server: Server::default(),
            link: Link::default(),
            jobs: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Cost {
    /// Bytes plus a charge for each operation, in bytes.
    Bytes { per_operation: u64 },
    /// Every request the same.
    Request,
}

impl Default for Cost {
    fn default() -> Self {
        match CostModel::DEFAULT {
            CostModel::Bytes { per_operation } => Cost::Bytes { per_operation },
            CostModel::Request => Cost::Request,
        }
    }
}

impl From<Cost> for CostModel {
    fn from(cost: Cost) -> Self {
        match cost {
            Cost::Bytes { per_operation } => CostModel::Bytes { per_operation },
            Cost::Request => CostModel::Request,
        }
    }
}

/// One server: workers take requests from the scheduler and move them through a pipe.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Of one direction.
    pub bandwidth: f64,
    /// Whether reads and writes have a pipe each, as over a full-duplex network, or share one.
    pub duplex: bool,
    /// Time of a worker on a request, beside moving its bytes.
    pub overhead_s: f64,
    /// Exponential part of overhead and moving time: 0 none, 1 all of it.
    pub jitter: f64,
    /// Requests in service at a time.
    pub workers: u32,
    /// Schedulers, each with its part of the workers and of the connections. The published ThemisIO has
    /// one for each worker; tiercel's server has one.
    pub queues: u32,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            bandwidth: 11.7e9,
            duplex: true,
            overhead_s: 20e-6,
            jitter: 0.1,
            workers: 16,
            queues: 1,
        }
    }
}

/// Between a compute node and the servers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Of a node's network card, in each direction.
    pub bandwidth: f64,
    /// One way.
    pub latency_s: f64,
}

impl Default for Link {
    fn default() -> Self {
        Link {
            bandwidth: 12.5e9,
            latency_s: 3e-6,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Write,
    Read,
    /// Writes a file, reads it back, and so on.
    WriteRead,
    /// Moves no bytes.
    Stat,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Each piece of a process's file lies on a server by hash.
    Hash,
    /// Pieces go round over the servers.
    Balanced,
}

/// A job: what it is to the policy, and what its processes do.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    pub id: u64,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub user: u32,
    #[serde(default)]
    pub group: u32,
    #[serde(default = "one")]
    pub priority: u32,
    #[serde(default = "one")]
    pub nodes: u32,
    #[serde(default = "eight")]
    pub processes_per_node: u32,
    #[serde(default)]
    pub start_s: f64,
    /// No new requests from then on; null: the end of the simulation.
    #[serde(default)]
    pub stop_s: Option<f64>,
    #[serde(default = "write")]
    pub operation: Operation,
    /// Of a request.
    #[serde(default = "mebibyte")]
    pub size: u64,
    /// Requests that a process has outstanding.
    #[serde(default = "one")]
    pub depth: u32,
    /// Between an answer and the next request.
    #[serde(default)]
    pub think_s: f64,
    /// Of a write-read cycle.
    #[serde(default = "ten_mebibytes")]
    pub file_size: u64,
    /// Each process moves so much, then all wait for each other and compute; null: without end.
    #[serde(default)]
    pub bytes_per_cycle: Option<u64>,
    #[serde(default)]
    pub compute_s: f64,
    /// After so many cycles the job is done; null: without end.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// Servers of each process's file.
    #[serde(default = "one")]
    pub pieces: u32,
    #[serde(default = "hash")]
    pub placement: Placement,
    /// The only servers, by number from 0, that hold its files; null: all.
    #[serde(default)]
    pub servers: Option<Vec<u32>>,
}

fn one() -> u32 {
    1
}
fn eight() -> u32 {
    8
}
fn mebibyte() -> u64 {
    1 << 20
}
fn ten_mebibytes() -> u64 {
    10 << 20
}
fn write() -> Operation {
    Operation::Write
}
fn hash() -> Placement {
    Placement::Hash
}

impl JobSpec {
    pub fn job(&self) -> Job {
        Job {
            id: self.id,
            user: self.user,
            group: self.group,
            size: self.nodes,
            priority: self.priority,
        }
    }
}

/// More than a study needs, less than what exhausts a machine's memory.
const MOST_SERVERS: u32 = 100_000;
const MOST_PROCESSES: u64 = 5_000_000;
const MOST_INTERVALS: f64 = 1e6;

impl Config {
    pub fn policy(&self) -> Result<Policy, String> {
        Policy::parse(&self.policy).map_err(|error| format!("policy: {error}"))
    }

    pub fn scheduler(&self) -> Result<SchedulerKind, String> {
        self.scheduler
            .parse()
            .map_err(|error| format!("scheduler: {error}"))
    }

    /// What is wrong with the document, key first, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.policy()?;
        let kind = self.scheduler()?;
        if kind == SchedulerKind::TbfPublished && self.cost == Cost::Request {
            return Err("cost: tbf-published has a rate in bytes per second, so it needs cost bytes".into());
        }
        within("servers", self.servers.into(), 1.0, MOST_SERVERS.into())?;
        within("duration_s", self.duration_s, 1e-6, 1e6)?;
        within("interval_s", self.interval_s, 1e-6, 1e6)?;
        within(
            "intervals (duration_s / interval_s)",
            self.duration_s / self.interval_s,
            0.0,
            MOST_INTERVALS,
        )?;
        if let Some(lambda) = self.lambda_s {
            within("lambda_s", lambda, 1e-4, 1e6)?;
        }
        within("server.bandwidth", self.server.bandwidth, 1.0, 1e15)?;
        within("server.overhead_s", self.server.overhead_s, 0.0, 1e3)?;
        within("server.jitter", self.server.jitter, 0.0, 1.0)?;
        within("server.workers", self.server.workers.into(), 1.0, 65536.0)?;
        within(
            "server.queues",
            self.server.queues.into(),
            1.0,
            self.server.workers.into(),
        )?;
        within("link.bandwidth", self.link.bandwidth, 1.0, 1e15)?;
        within("link.latency_s", self.link.latency_s, 0.0, 1e3)?;
        if self.jobs.is_empty() {
            return Err("jobs: there is none to simulate".into());
        }
        let mut seen = std::collections::HashSet::new();
        for job in &self.jobs {
            if !seen.insert(job.id) {
                return Err(format!("jobs: id {} is given twice", job.id));
            }
            job.check(self)
                .map_err(|error| format!("job {}: {error}", job.id))?;
        }
        let processes: u64 = self
            .jobs
            .iter()
            .map(|job| u64::from(job.nodes) * u64::from(job.processes_per_node))
            .sum();
        if processes > MOST_PROCESSES {
            return Err(format!(
                "jobs: {processes} processes are more than {MOST_PROCESSES}"
            ));
        }
        let queues = u64::from(self.servers) * u64::from(self.server.queues);
        let in_flight = self
            .jobs
            .iter()
            .map(|job| u64::from(job.nodes) * u64::from(job.processes_per_node) * u64::from(job.depth));
        if queues.max(in_flight.sum()) >= NUMBERS.into() {
            return Err(format!(
                "servers and jobs: more than {NUMBERS} schedulers or outstanding requests"
            ));
        }
        Ok(())
    }
}

impl JobSpec {
    fn check(&self, config: &Config) -> Result<(), String> {
        within("nodes", self.nodes.into(), 1.0, 1e6)?;
        within("processes_per_node", self.processes_per_node.into(), 1.0, 1e4)?;
        within("depth", self.depth.into(), 1.0, 4096.0)?;
        within("size", self.size as f64, 0.0, 1e12)?;
        within("pieces", self.pieces.into(), 1.0, 1e4)?;
        within("start_s", self.start_s, 0.0, 1e6)?;
        within("think_s", self.think_s, 0.0, 1e6)?;
        within("compute_s", self.compute_s, 0.0, 1e6)?;
        if self
            .stop_s
            .is_some_and(|stop| !stop.is_finite() || stop <= self.start_s)
        {
            return Err("stop_s: must be later than start_s".into());
        }
        if self.operation != Operation::Stat && self.size == 0 {
            return Err("size: must be more than 0".into());
        }
        if self.operation == Operation::WriteRead && self.file_size < self.size {
            return Err("file_size: must hold one request of size".into());
        }
        if self.bytes_per_cycle == Some(0) || self.cycles == Some(0) {
            return Err("bytes_per_cycle and cycles: must be more than 0".into());
        }
        if self.bytes_per_cycle.is_none() && (self.cycles.is_some() || self.compute_s > 0.0) {
            return Err("bytes_per_cycle: is needed with cycles or compute_s".into());
        }
        if self.bytes_per_cycle.is_some() && self.operation == Operation::Stat {
            return Err("bytes_per_cycle: a stat moves no bytes".into());
        }
        if let Some(servers) = &self.servers {
            if servers.is_empty() || servers.iter().any(|&server| server >= config.servers) {
                return Err(format!("servers: must be numbers below {}", config.servers));
            }
        }
        Ok(())
    }
}

fn within(key: &str, value: f64, least: f64, most: f64) -> Result<(), String> {
    if value.is_finite() && (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!(
            "{key}: must lie between {least} and {most} (given: {value})"
        ))
    }
}
