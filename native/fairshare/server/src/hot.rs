//! Which segments the workers look at by themselves (hot), and whose clients wake the server when they post something
//! (armed). Each is one of the two, and becomes the other under one lock: a client whose segment was
//! neither would wait for ever.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::connection::Connection;
use crate::session::Shared;

#[derive(Default)]
pub struct Hot(Mutex<Vec<Arc<Connection>>>);

impl Hot {
    /// A client has woken the server: from now on its segment is looked at.
    pub fn rung(&self, connection: &Arc<Connection>) {
        let Some(shared) = shared_of(connection) else {
            return;
        };
        // Not before the lock is ours: whoever arms segments may be about to take this one from the list,
        // after its client has taken the arming for this ring.
        let mut list = self.list();
        if !shared.hot.swap(true, Ordering::Relaxed) {
            shared.segment.disarm();
            list.push(Arc::clone(connection));
        }
    }

    /// Look at each hot segment. Returns the sum of what `collect` returns.
    pub fn scan(&self, collect: impl Fn(&Arc<Connection>) -> usize) -> usize {
        self.list().iter().map(collect).sum()
    }

    /// Have clients wake the server from now on. False: something was posted meanwhile, and that segment stays hot.
    pub fn arm(&self) -> bool {
        let mut quiet = true;
        self.list().retain(|connection| {
            let Some(shared) = shared_of(connection).filter(|_| !connection.closed.load(Ordering::SeqCst))
            else {
                return false;
            };
            let posted = shared.segment.arm();
            if posted {
                shared.segment.disarm();
                quiet = false;
            }
            shared.hot.store(posted, Ordering::Relaxed);
            posted
        });
        quiet
    }

    /// Whether nobody but one client is looked at.
    pub fn is_one(&self) -> bool {
        self.list().len() == 1
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.0.lock().expect("no panics under this lock")
    }
}

fn shared_of(connection: &Connection) -> Option<&Shared> {
    connection.session.get()?.shared.as_ref()
}

#[cfg(test)]
pub mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    use policy::Job;

    use super::*;
    use crate::connection::Socket;
    use crate::creds::Creds;
    use crate::jobs::{Described, Jobs, Proof};
    use crate::segment::Segment;
    use crate::session::Session;
    use wire::CHALLENGE_BYTES;

    /// A session with shared memory, of a job that nobody else has.
    pub fn session() -> Arc<Session> {
        let described = Described::new(1, "one", Job::new, Proof::Kernel);
        let segment = Segment::create().unwrap().0;
        let entry = Jobs::default().join(&described);
        Arc::new(Session {
            local: true,
            shared: Some(Shared::new(segment)),
            ..Session::new(1, Creds::own(), described.job.id, entry)
        })
    }

    fn client() -> Arc<Connection> {
        let socket = Socket::Unix(UnixStream::pair().unwrap().0);
        let connection = Connection::new(1, socket, [0; CHALLENGE_BYTES]);
        assert!(connection.session.set(session()).is_ok());
        Arc::new(connection)
    }

    /// Clients post, again whenever that was seen, and wake the server themselves, while others look and arm.
    #[test]
    fn whatever_is_posted_is_seen() {
        // Nightly tests have more of them.
        let posts = std::env::var("FAIRSHARE_FUZZ").map_or(150_000, |text| text.parse().unwrap());
        let (hot, over) = (Hot::default(), AtomicBool::new(false));
        let take = |connection: &Arc<Connection>| {
            shared_of(connection).unwrap().segment.take_posted().count_ones() as usize
        };
        let post = || {
            let connection = client();
            let segment = &shared_of(&connection).unwrap().segment;
            for posted in 0..posts {
                for _ in 0..posted * 7919 % 256 {
                    std::hint::spin_loop(); // so that a post comes at any moment of arming
                }
                if segment.post(posted % 16) {
                    hot.rung(&connection);
                }
                let until = Instant::now() + Duration::from_secs(10);
                while segment.has_posted() {
                    assert!(Instant::now() < until, "nobody looks at what was posted");
                    thread::yield_now();
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        hot.scan(take);
                        hot.arm();
                        thread::yield_now();
                    }
                });
            }
            let clients = [scope.spawn(post), scope.spawn(post)];
            let ended = clients.map(|client| client.join());
            over.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok), "nobody looks at what was posted");
        });
    }
}
