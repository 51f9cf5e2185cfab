//! The server's state. The workers are in `worker.rs`; below this are `clients`
//! (who comes and goes over sockets), `posted` (requests in shared memory) and `answers`.

mod answers;
pub(crate) mod clients;
mod posted;

use std::collections::HashMap;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use policy::{Arbiter, JobId};
use wire::segment;

use crate::arrivals::Arrivals;
use crate::budget::Budgets;
use crate::caches::Caches;
use crate::config::{Config, Live};
use crate::connection::Connection;
use crate::data::DataFolder;
use crate::door::Door;
use crate::epoll::{eventfd, Epoll};
use crate::errno::Result;
use crate::handles::Handles;
use crate::hot::Hot;
use crate::identity::Key;
use crate::jobs::{Described, Entry, Jobs};
use crate::locks::RecordLocks;
use crate::log::Log;
use crate::mapping::Inodes;
use crate::members::Members;
use crate::outcome::Outcome;
use crate::patience::Brevity;
use crate::queue::{Pending, Queue};
use crate::sent_away::SentAway;
use crate::session::Session;
use crate::slurm::Slurm;
use crate::strangers::Strangers;
use crate::tree::Tree;
use crate::vouchers::Vouchers;

/// What an epoll event is about: the kind in the low three bits, an id above.
pub mod about {
    pub const UNIX_LISTENER: u64 = 0;
    pub const TCP_LISTENER: u64 = 1;
    pub const SOCKET: u64 = 2;
    pub const STOP: u64 = 5;
    pub const NUDGE: u64 = 6;
}

/// Called when a mount has dropped something.
pub type Done = Box<dyn FnOnce(&Server) + Send>;

/// Has the own mount's kernel drop what it has of a file, which a user changes.
pub type Forget = Box<dyn Fn(u64, u32, Done) + Send + Sync>;

/// What takes long, and whose job it is that is charged for it.
pub type Long = Box<dyn FnOnce(&Server) -> Option<Arc<Entry>> + Send>;

/// Has something done that takes long for a user.
pub type Apart = Box<dyn Fn(u32, Long) + Send + Sync>;

pub struct Server {
    /// Stays over restarts: the data folder's.
    pub id: u64,
    pub config: Config,
    /// What of it can change, as it is now.
    pub live: RwLock<Live>,
    pub log: Log,
    pub sent_away: SentAway,
    pub tree: Tree,
    pub handles: Handles,
    /// Who carries out what takes long.
    pub(crate) apart: OnceLock<Apart>,
    pub inodes: Inodes,
    pub records: RecordLocks,
    pub slurm: Slurm,
    pub jobs: Jobs,
    pub queue: Queue,
    pub key: Key,
    pub(crate) epoll: Epoll,
    pub(crate) door: Door,
    pub(crate) tcp: Option<TcpListener>,
    pub(crate) stop: OwnedFd,
    nudge: OwnedFd,
    pub(crate) arrivals: Arrivals,
    /// How long requests of the mount take that are carried out where they arrive.
    pub(crate) brevity: Brevity,
    pub(crate) stopping: AtomicBool,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    strangers: Strangers,
    pub budgets: Budgets,
    next_connection: AtomicU64,
    /// Joining and leaving a job changes two tables.
    membership: Mutex<()>,
    /// Connections whose segments the workers look at by themselves.
    hot: Hot,
    /// What mounts keep of files.
    pub(crate) caches: Caches<Done>,
    /// The own mount, where there is one.
    pub(crate) own_mount: OnceLock<Forget>,
    pub(crate) vouchers: Vouchers,
    pub(crate) members: Members,
    /// Of the data folder; held as long as this lives.
    _lock: File,
}

impl Server {
    /// A server that listens, but does nothing yet, and the jobs that Slurm is to be asked for.
    pub(crate) fn new(
        config: Config,
        data: DataFolder,
        door: Door,
        log: Log,
    ) -> Result<(Arc<Self>, Receiver<u64>)> {
        let epoll = Epoll::new()?;
        door.listener.set_nonblocking(true)?;
        epoll.add(door.listener.as_raw_fd(), libc::EPOLLIN, about::UNIX_LISTENER)?;
        let tcp = match &config.listen {
            Some(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                epoll.add(listener.as_raw_fd(), libc::EPOLLIN, about::TCP_LISTENER)?;
                Some(listener)
            }
            None => None,
        };
        let (stop, nudge) = (eventfd()?, eventfd()?);
        epoll.add(stop.as_raw_fd(), libc::EPOLLIN, about::STOP)?;
        epoll.add(nudge.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, about::NUDGE)?;
        let (slurm, jobs_asked_for) = Slurm::new();
        let arbiter = Arbiter::new(config.live.scheduler, &config.policy, &config.settings);
        let budgets = Budgets::of_this_machine(config.parallel + config.spare);
        let server = Arc::new(Self {
            id: data.id,
            tree: Tree::open(&data.tree)?,
            handles: Handles::new(config.most_handles),
            apart: OnceLock::new(),
            inodes: Inodes::new(budgets.mappings.clone()),
            records: RecordLocks::default(),
            slurm,
            jobs: Jobs::default(),
            queue: Queue::new(
                arbiter,
                config.cost(config.live.rate),
                config.parallel,
                config.live.rate,
            ),
            key: data.key,
            epoll,
            door,
            tcp,
            stop,
            nudge,
            arrivals: Arrivals::default(),
            brevity: Brevity::default(),
            stopping: AtomicBool::new(false),
            connections: Mutex::default(),
            strangers: Strangers::new(budgets.strangers),
            budgets,
            next_connection: AtomicU64::new(1),
            membership: Mutex::default(),
            hot: Hot::default(),
            caches: Caches::default(),
            own_mount: OnceLock::new(),
            vouchers: Vouchers::default(),
            members: Members::default(),
            _lock: data.lock,
            live: RwLock::new(config.live.clone()),
            log,
            sent_away: SentAway::default(),
            config,
        });
        Ok((server, jobs_asked_for))
    }

    pub(crate) fn enqueue(&self, job: JobId, pending: Vec<Pending>) {
        for refused in self.queue.push(job, pending) {
            self.answer(refused, Outcome::of(-i64::from(libc::ESHUTDOWN)));
        }
    }

    /// A session of a job begins.
    pub(crate) fn join_job(&self, described: &Described) -> Arc<Entry> {
        let _guard = self.membership.lock().expect("no panics under this lock");
        let entry = self.jobs.join(described);
        let job = *entry.job.lock().expect("no panics under this lock");
        self.queue.add_job(job);
        entry
    }

    /// Slurm has said how large a job is. It stays in its place in the queue.
    pub(crate) fn resize_job(&self, name: &str, nodes: u32) {
        let _guard = self.membership.lock().expect("no panics under this lock");
        for job in self.jobs.resize(name, nodes) {
            self.queue.add_job(job);
        }
    }

    /// A session of a job has ended. The requests of a job without sessions have nobody to answer to.
    pub(crate) fn leave_job(&self, session: &Session) {
        let _guard = self.membership.lock().expect("no panics under this lock");
        if self.jobs.leave(session.job) {
            drop(self.queue.remove_job(session.job));
        }
    }

    /// Make the worker that listens look at the queue.
    pub(crate) fn nudge(&self) {
        ring(self.nudge.as_raw_fd());
    }

    /// Where clients of other machines are served, if they are.
    pub fn tcp_port(&self) -> Option<u16> {
        Some(self.tcp.as_ref()?.local_addr().ok()?.port())
    }

    /// What has to be done now and then.
    pub(crate) fn tidy(&self) {
        for connection in self.strangers.late() {
            self.end(&connection);
        }
        self.end_late_mounts();
    }

    /// Bytes that a mount's kernel may ask for at once: a request is served whole, so where a rate holds no more than what
    /// that gives in some 4 ms. Whoever writes a little at a time would wait for as much of the others' before each of his.
    pub fn turn(&self) -> u32 {
        const LEAST: u64 = segment::SLOT_BYTES as u64;
        const MOST: u64 = 1 << 20;
        const PAGE: u64 = 4096;
        let rate = self.live.read().expect("no panics under this lock").rate;
        let bytes = if rate == 0 { MOST } else { rate / 256 };
        (bytes.clamp(LEAST, MOST) / PAGE * PAGE) as u32
    }

    /// Make all workers come to an end.
    pub fn shut_down(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        ring(self.stop.as_raw_fd());
    }
}

pub(crate) fn ring(eventfd: RawFd) {
    let one = 1_u64;
    // SAFETY: eight bytes, as an eventfd wants them.
    unsafe {
        libc::write(eventfd, (&raw const one).cast(), 8);
    }
}
