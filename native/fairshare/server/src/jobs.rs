//! The job table: who is connected, for which job, and what each job has moved.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use policy::{Job, JobId};

/// Bytes and requests of a job on this server since the server knows it.
#[derive(Default)]
pub struct Counters {
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub operations: AtomicU64,
}

impl Counters {
    /// A request that asks something of the files, whatever came of it.
    pub fn operation(&self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
    }

    pub fn moved(&self, read: u64, written: u64) {
        self.bytes_read.fetch_add(read, Ordering::Relaxed);
        self.bytes_written.fetch_add(written, Ordering::Relaxed);
    }
}

/// A job as a session says it: whose, under which name, and who vouches for its size.
#[derive(Debug, Clone)]
pub struct Described {
    pub name: String,
    pub job: Job,
    pub proof: Proof,
}

impl Described {
    /// Jobs belong to a user: another's of the same name is another job.
    pub fn new(uid: u32, name: &str, job: impl FnOnce(JobId) -> Job, proof: Proof) -> Self {
        Self {
            name: name.to_owned(),
            job: job(id_of(uid, name)),
            proof,
        }
    }
}

/// Who vouches for a job's description, the stronger the greater. Of two tickets the one that is valid for
/// longer counts, in whatever order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// The user, who asked for a ticket.
    Own,
    /// The kernel, and Slurm for what lies in its control groups.
    Kernel,
    /// A ticket that the administrator had signed.
    Ticket { expires: u64, nonce: u64 },
}

pub struct Entry {
    pub name: String,
    pub job: Mutex<Job>,
    pub counters: Counters,
}

struct Listed {
    entry: Arc<Entry>,
    proof: Proof,
    sessions: usize,
}

#[derive(Default)]
pub struct Jobs(Mutex<HashMap<JobId, Listed>>);

/// The same on all servers: a job's user and name decide.
fn id_of(uid: u32, name: &str) -> JobId {
    let mut hasher = DefaultHasher::new(); // SipHash with fixed keys
    (uid, name).hash(&mut hasher);
    hasher.finish()
}

impl Jobs {
    /// A session of a job has begun. What it says of the job counts where nobody is there who can prove more.
    pub fn join(&self, described: &Described) -> Arc<Entry> {
        let Described { name, job, proof } = described;
        let mut jobs = self.0.lock().expect("no panics under this lock");
        let listed = jobs.entry(job.id).or_insert_with(|| Listed {
            entry: Arc::new(Entry {
                name: name.clone(),
                job: Mutex::new(*job),
                counters: Counters::default(),
            }),
            proof: *proof,
            sessions: 0,
        });
        if listed.sessions == 0 || *proof > listed.proof {
            listed.proof = *proof;
            *listed.entry.job.lock().expect("no panics under this lock") = *job;
        }
        listed.sessions += 1;
        Arc::clone(&listed.entry)
    }

    /// The jobs of a name that sessions have, and that no ticket gave a size, get one. Returns them as they
    /// are now.
    pub fn resize(&self, name: &str, nodes: u32) -> Vec<Job> {
        let jobs = self.0.lock().expect("no panics under this lock");
        let named = jobs
            .values()
            .filter(|listed| listed.sessions > 0 && listed.entry.name == name);
        let of_slurm = named.filter(|listed| listed.proof == Proof::Kernel);
        of_slurm
            .map(|listed| {
                let mut job = listed.entry.job.lock().expect("no panics under this lock");
                *job = job.size(nodes);
                *job
            })
            .collect()
    }

    /// A session has ended. True: it was the job's last, and the job is inactive from now on.
    pub fn leave(&self, id: JobId) -> bool {
        let mut jobs = self.0.lock().expect("no panics under this lock");
        let Some(listed) = jobs.get_mut(&id) else {
            return false;
        };
        listed.sessions = listed.sessions.saturating_sub(1);
        let last = listed.sessions == 0;
        if last && jobs.len() > 4096 {
            jobs.remove(&id); // a long-lived server does not remember all jobs that ever were
        }
        last
    }

    /// All jobs with their number of sessions; those without any are inactive.
    pub fn list(&self) -> Vec<(Arc<Entry>, usize)> {
        let jobs = self.0.lock().expect("no panics under this lock");
        jobs.values()
            .map(|listed| (Arc::clone(&listed.entry), listed.sessions))
            .collect()
    }
}
