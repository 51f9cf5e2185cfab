//! Discrete-event simulator of a shared burst buffer: jobs, their processes, compute nodes' network cards,
//! servers with workers and pipes, and the schedulers of `fairshare-policy` between them.
//!
//! Everything that it says is marked as simulated. Same document, same answer, on every machine.

mod calibrate;
mod clients;
mod config;
mod events;
mod result;
mod series;
mod server;
mod world;

pub use calibrate::{calibrate, Fit, Setup, Simulated, Task};
pub use config::{Config, Cost, JobSpec, Link, Operation, Placement, Server, Tuning};
pub use result::{Interval, JobOutcome, Outcome, Phase, PhaseJob};

/// Runs the simulation that the document describes; an error is one sentence that names the key.
pub fn simulate(config: &Config) -> Result<Outcome, String> {
    config.check()?;
    let mut world = world::World::new(config)?;
    world.run();
    Ok(result::outcome(config, &world))
}
