//! Discrete-event simulator of a shared burst buffer: jobs, their processes, compute nodes' network cards,
//! servers with workers and pipes, and the schedulers of `fairshare-policy` between them.
//!
//! Everything that it says is marked as simulated. Same document, same answer, on every machine.

mod calibrate;
mod clients;
mod config;
mod events;
mod promise;
mod result;
mod series;
mod server;
mod simulate;
mod world;

pub use calibrate::{calibrate, Fit, Setup, Simulated, Task};
pub use config::{Config, Cost, JobSpec, Link, Operation, Placement, Server};
pub use promise::{promise, Entry, Matrix, Promise, Promised};
pub use result::{Interval, JobOutcome, Outcome, Phase, PhaseJob};
pub use simulate::simulate;
