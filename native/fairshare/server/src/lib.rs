//! fairshare's server. Read in this order: `tree` (what is served), `identity` (to whom), `queue` (in
//! which order), `worker` (by whom), `ops` (what is done), `connection` and `segment` (how it is said).

mod area;
mod budget;
mod cgroup;
pub mod config;
mod connection;
mod control;
mod copy;
mod creds;
pub mod data;
pub mod door;
mod epoll;
mod errno;
mod fault;
mod fuse;
mod handles;
mod hot;
mod identity;
mod inside;
mod jobs;
mod leases;
mod locks;
pub mod log;
mod mapping;
mod metrics;
mod ops;
mod peers;
mod queue;
mod safe;
mod segment;
pub mod server;
mod session;
mod slurm;
mod status;
mod strangers;
mod stripes;
mod tree;
pub mod worker;

pub use fault::install as catch_unreadable_pages;
pub use fuse::mount;
