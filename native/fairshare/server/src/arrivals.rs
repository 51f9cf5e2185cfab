//! Requests that begin inside the server, and whether a worker sleeps that has to be told of the next one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Told of each, workers would be woken for what they are about to see: one that ends a request looks for others before
/// it sleeps.
#[derive(Default)]
pub struct Arrivals {
    count: AtomicU64,
    armed: AtomicBool,
}

impl Arrivals {
    /// How many came so far. A worker asks before it looks at the queue.
    pub fn seen(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Ask to be told from now on. False: more came since they were `seen`, so don't sleep.
    pub fn arm(&self, seen: u64) -> bool {
        self.armed.store(true, Ordering::SeqCst);
        self.seen() == seen
    }

    /// One has been queued. Returns whether a worker has to be told.
    pub fn came(&self) -> bool {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.armed.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// One puts requests into the queue, another takes them and sleeps only when it has asked to be told.
    #[test]
    fn whatever_comes_is_seen() {
        const COUNT: u64 = 300_000;
        let (arrivals, queued) = (Arrivals::default(), AtomicU64::new(0));
        let (tell, told) = mpsc::channel();
        let mut rings = 0;
        thread::scope(|scope| {
            let comes = scope.spawn(|| {
                for came in 0..COUNT {
                    for _ in 0..came * 7919 % 256 {
                        std::hint::spin_loop(); // so that it comes at any moment of arming
                    }
                    queued.fetch_add(1, Ordering::SeqCst);
                    if arrivals.came() {
                        tell.send(()).unwrap();
                    }
                }
            });
            let mut taken = 0;
            while taken < COUNT {
                let seen = arrivals.seen();
                let now = queued.swap(0, Ordering::SeqCst);
                taken += now;
                if now == 0 && arrivals.arm(seen) {
                    let woken = told.recv_timeout(Duration::from_secs(10));
                    assert!(woken.is_ok(), "nobody tells of what is queued");
                    rings += 1;
                }
            }
            comes.join().unwrap();
        });
        assert!(rings < COUNT, "who is awake is not told");
    }
}
