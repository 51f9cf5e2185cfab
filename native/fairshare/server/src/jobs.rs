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
    pub fn count(&self, read: u64, written: u64) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(read, Ordering::Relaxed);
        self.bytes_written.fetch_add(written, Ordering::Relaxed);
    }
}

pub struct Entry {
    pub name: String,
    pub job: Mutex<Job>,
    pub counters: Counters,
}

struct Listed {
    entry: Arc<Entry>,
    sessions: usize,
}

#[derive(Default)]
pub struct Jobs(Mutex<HashMap<JobId, Listed>>);

/// The same on all servers: a job's name decides.
pub fn id_of(name: &str) -> JobId {
    let mut hasher = DefaultHasher::new(); // SipHash with fixed keys
    name.hash(&mut hasher);
    hasher.finish()
}

impl Jobs {
    /// A session of a job has begun. Its description replaces an older one of the same job.
    pub fn join(&self, name: &str, job: Job) -> Arc<Entry> {
        let mut jobs = self.0.lock().expect("no panics under this lock");
        let listed = jobs.entry(job.id).or_insert_with(|| Listed {
            entry: Arc::new(Entry {
                name: name.to_owned(),
                job: Mutex::new(job),
                counters: Counters::default(),
            }),
            sessions: 0,
        });
        listed.sessions += 1;
        *listed.entry.job.lock().expect("no panics under this lock") = job;
        Arc::clone(&listed.entry)
    }

    /// A job that sessions have, and that no ticket gave a size, gets one. Returns it as it is now.
    pub fn resize(&self, name: &str, nodes: u32) -> Option<Job> {
        let jobs = self.0.lock().expect("no panics under this lock");
        let listed = jobs.get(&id_of(name)).filter(|listed| listed.sessions > 0)?;
        let mut job = listed.entry.job.lock().expect("no panics under this lock");
        if job.size != 1 {
            return None;
        }
        *job = job.size(nodes);
        Some(*job)
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
