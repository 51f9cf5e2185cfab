//! Sharing policies and the I/O schedulers that carry them out.
//!
//! A library without I/O, threads, clock or system calls: time is passed in, randomness comes from
//! a seed, so that the server and the simulator run the same code and a run can be repeated.
//!
//! - [`Policy`]: what is fair (`size-fair`, `user-then-size-fair`, ...), and [`shares`]: the fraction
//!   of the service that each job is entitled to (ThemisIO, section 3).
//! - [`Scheduler`]: which request goes next, with one implementation a file: [`SchedulerKind`] names
//!   them, [`Arbiter`] holds one and changes policy or scheduler while requests are queued.
//! - [`CostModel`]: what a request costs. [`global`]: fair shares over several servers. [`Pace`]: a storage's
//!   bytes per second, so that it is the server where requests wait.

mod arbiter;
mod cost;
mod fifo;
mod gift;
pub mod global;
mod job;
mod levels;
mod pace;
mod queues;
pub mod random;
mod sampler;
mod scheduler;
mod shares;
mod stride;
mod tbf;
mod token;
mod tree;

pub use arbiter::Arbiter;
pub use cost::CostModel;
pub use job::{Job, JobId};
pub use levels::{distance, Level, ParseError, Policy};
pub use pace::{Pace, CATCH_UP};
pub use scheduler::{
    LocalShares, Nanos, Next, Request, Scheduler, SchedulerKind, Settings, UnknownJob, Usage,
};
pub use shares::{shares, transition_matrices, TransitionMatrix};
