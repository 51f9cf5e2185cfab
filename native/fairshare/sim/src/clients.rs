//! Simulated jobs and their processes: which request comes next, and where it goes.

use policy::random::Random;
use policy::Nanos;

use crate::config::{Config, JobSpec, Operation, Placement};
use crate::server::{nanos, Direction};

pub struct Process {
    pub job: u32,
    /// Number of its node over all jobs.
    pub node: u32,
    /// The server of each piece of its file.
    pub servers: Vec<u32>,
    /// Requests that it sent so far, and those not answered.
    sent: u64,
    pub outstanding: u32,
    /// Bytes of this cycle not sent yet.
    left: u64,
}

pub struct JobState {
    pub spec: JobSpec,
    pub running: bool,
    pub processes: std::ops::Range<u32>,
    /// Processes that have not finished the cycle.
    unfinished: u32,
    requests_in_file: u64,
    cycles: u64,
    pub outstanding: u64,
    pub bytes: u64,
    pub requests: u64,
    /// Sum of the times between sending and answer.
    pub waited: u128,
    pub finished: Option<Nanos>,
}

/// A request that a process wants to send.
pub struct Wanted {
    pub bytes: u64,
    pub server: u32,
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// The process may send again after this time.
    Send(Nanos),
    /// It waits for the others of its job.
    Wait,
    /// All processes of the job may begin the next cycle after this time.
    Cycle(Nanos),
    /// The job is done.
    Finished,
}

pub struct Clients {
    pub jobs: Vec<JobState>,
    pub processes: Vec<Process>,
    pub nodes: u32,
}

impl Clients {
    pub fn new(config: &Config) -> Self {
        let (mut jobs, mut processes, mut nodes) = (Vec::new(), Vec::new(), 0);
        for (number, spec) in config.jobs.iter().enumerate() {
            let first = processes.len() as u32;
            for process in 0..spec.nodes * spec.processes_per_node {
                processes.push(Process {
                    job: number as u32,
                    node: nodes + process / spec.processes_per_node,
                    servers: place(config, spec, process),
                    sent: first_request(config, spec, process),
                    outstanding: 0,
                    left: spec.bytes_per_cycle.unwrap_or(u64::MAX),
                });
            }
            nodes += spec.nodes;
            jobs.push(JobState {
                spec: spec.clone(),
                running: false,
                processes: first..processes.len() as u32,
                unfinished: spec.nodes * spec.processes_per_node,
                requests_in_file: spec.file_size / spec.size.max(1),
                cycles: 0,
                outstanding: 0,
                bytes: 0,
                requests: 0,
                waited: 0,
                finished: None,
            });
        }
        Clients {
            jobs,
            processes,
            nodes,
        }
    }

    /// Direction of the process's next request, if it may send one.
    pub fn may_send(&self, process: u32) -> Option<Direction> {
        let process = &self.processes[process as usize];
        let job = &self.jobs[process.job as usize];
        if !job.running || process.outstanding >= job.spec.depth || process.left == 0 {
            return None;
        }
        Some(match job.spec.operation {
            Operation::Stat | Operation::Read => Direction::Read,
            Operation::Write => Direction::Write,
            Operation::WriteRead => {
                let reads = process.sent % (2 * job.requests_in_file) >= job.requests_in_file;
                if reads {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
        })
    }

    /// The next request of a process that may send one.
    pub fn next(&mut self, process: u32) -> Wanted {
        let process = &mut self.processes[process as usize];
        let job = &mut self.jobs[process.job as usize];
        let bytes = match job.spec.operation {
            Operation::Stat => 0,
            _ => job.spec.size.min(process.left),
        };
        let server = process.servers[(process.sent % process.servers.len() as u64) as usize];
        process.sent += 1;
        process.outstanding += 1;
        if process.left != u64::MAX {
            process.left -= bytes;
        }
        job.outstanding += 1;
        Wanted { bytes, server }
    }

    /// A request of `bytes` sent at `sent` was answered.
    pub fn answered(&mut self, process: u32, bytes: u64, sent: Nanos, now: Nanos) -> Then {
        let process = &mut self.processes[process as usize];
        let job = &mut self.jobs[process.job as usize];
        process.outstanding -= 1;
        job.outstanding -= 1;
        job.bytes += bytes;
        job.requests += 1;
        job.waited += u128::from(now - sent);
        if process.left > 0 {
            return Then::Send(nanos(job.spec.think_s));
        }
        if process.outstanding > 0 {
            return Then::Wait;
        }
        job.unfinished -= 1;
        if job.unfinished > 0 {
            return Then::Wait;
        }
        job.cycles += 1;
        if job.spec.cycles == Some(job.cycles) {
            job.finished = Some(now);
            return Then::Finished;
        }
        job.unfinished = job.processes.len() as u32;
        let (range, left) = (
            job.processes.clone(),
            job.spec.bytes_per_cycle.unwrap_or(u64::MAX),
        );
        let compute = nanos(job.spec.compute_s);
        for process in range {
            self.processes[process as usize].left = left;
        }
        Then::Cycle(compute)
    }
}

/// Where in its cycle of writing and reading a process begins. Real processes get out of step while they
/// connect; in step they would use the two directions of the network by turns, and half of it at a time.
fn first_request(config: &Config, spec: &JobSpec, process: u32) -> u64 {
    match spec.operation {
        Operation::WriteRead => {
            random(config, spec, u64::from(process) << 32).below(2 * (spec.file_size / spec.size))
        }
        _ => 0,
    }
}

/// Random numbers that depend on the seed, the job and `which`, and on nothing that happens.
fn random(config: &Config, spec: &JobSpec, which: u64) -> Random {
    let mut random = Random::new(config.seed);
    let mut random = Random::new(random.bits() ^ spec.id);
    Random::new(random.bits() ^ which)
}

/// The servers of a process's file: by hash of job, process and piece, or going round.
fn place(config: &Config, spec: &JobSpec, process: u32) -> Vec<u32> {
    let all: Vec<u32> = (0..config.servers).collect();
    let servers = spec.servers.as_ref().unwrap_or(&all);
    let pieces = u64::from(spec.pieces);
    (0..pieces)
        .map(|piece| {
            let of_all = u64::from(process) * pieces + piece;
            let place = match spec.placement {
                Placement::Balanced => of_all % servers.len() as u64,
                Placement::Hash => random(config, spec, of_all).below(servers.len() as u64),
            };
            servers[place as usize]
        })
        .collect()
}
