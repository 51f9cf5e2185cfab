//! The workers: each takes the next request by the policy, carries it out and answers it.
//!
//! There is no thread that only distributes: a worker that finds nothing to do becomes the one that
//! listens (to sockets), and serves what it hears of itself, so that a small request costs
//! no hand-over between threads. While as many are served as may be, nobody listens: whoever ends a request
//! looks for the next, and a deputy looks after sockets every millisecond. Nobody spins, but for a few
//! microseconds with the processor offered to others.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use policy::Nanos;

use crate::creds;
use crate::patience::{is_large, Patience};
use crate::queue::Work;
use crate::server::{about, Server};

/// How long the listener looks at busy segments before it sleeps.
const LOOK: Nanos = 8_000;
/// The same after the last piece of a large transfer, which its client copies meanwhile.
const LONG_LOOK: Nanos = 60_000;
/// Looks between two offers of the processor to others, each of which costs as much as some ten of them.
const LOOKS_IN_A_ROW: u32 = 10;
/// After this time without a request the server is at rest.
const REST: Nanos = 10_000_000;
const TICK: Duration = Duration::from_secs(1);
const DEPUTY: Duration = Duration::from_millis(1);

pub struct Workers {
    server: Arc<Server>,
    listening: Mutex<()>,
    waiting: Mutex<()>,
    wake: Condvar,
    deputy: AtomicBool,
    /// The earliest time at which a sleeping worker looks again by itself; a far one where none does.
    kept: AtomicU64,
    last_request: AtomicU64,
    /// The last request was a piece of a large transfer.
    large: AtomicBool,
    patience: Patience,
    /// Workers that look for what comes next.
    looking: AtomicUsize,
    last_tick: AtomicU64,
}

/// Start the workers and wait until the server is shut down.
pub fn run(server: &Arc<Server>) {
    let workers = Arc::new(Workers {
        server: Arc::clone(server),
        listening: Mutex::default(),
        waiting: Mutex::default(),
        wake: Condvar::new(),
        deputy: AtomicBool::new(false),
        kept: AtomicU64::new(Nanos::MAX),
        last_request: AtomicU64::new(0),
        large: AtomicBool::new(false),
        patience: Patience::default(),
        looking: AtomicUsize::new(0),
        last_tick: AtomicU64::new(0),
    });
    let threads: Vec<_> = (0..server.config.parallel + server.config.spare)
        .map(|number| {
            let workers = Arc::clone(&workers);
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || workers.work())
                .expect("a thread can be started")
        })
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
}

impl Workers {
    fn work(&self) {
        creds::lay_down();
        while !self.server.stopping.load(Ordering::SeqCst) {
            let seen = self.server.arrivals.seen();
            self.server.scan();
            let (work, more) = self.server.queue.pop();
            match work {
                Work::Serve(pending, ticked) => {
                    self.last_request
                        .store(self.server.queue.now(), Ordering::Relaxed);
                    // Who waits for a device leaves its place: somebody has to look for who takes it.
                    if more > 0 || ticked.leaves_its_place() || !self.deputy.load(Ordering::Relaxed) {
                        self.wake.notify_one();
                    }
                    let large = is_large(&pending.request);
                    let time = self.server.serve(*pending);
                    self.server.queue.done(&ticked, time);
                    self.large.store(large, Ordering::Relaxed);
                    if large {
                        self.last_request
                            .store(self.server.queue.now(), Ordering::Relaxed);
                    }
                }
                Work::WaitUntil(when) => {
                    self.rest(when, seen);
                }
                Work::Empty => self.rest(Nanos::MAX, seen),
                Work::Full => self.stand_by(),
            }
        }
        self.wake.notify_all();
    }

    /// Nothing to do until then: listen, or leave that to the one who does.
    fn rest(&self, until: Nanos, seen: u64) {
        let left = until.saturating_sub(self.server.queue.now()).max(1);
        let at_most = Duration::from_nanos(left).min(TICK);
        // More than may be served at a time need not look: they would take the processor from those who do.
        if self.looking.fetch_add(1, Ordering::SeqCst) >= self.server.config.parallel {
            self.looking.fetch_sub(1, Ordering::SeqCst);
            self.sleep(at_most, self.idle_time() < REST);
            return;
        }
        let nothing = self.look(at_most, seen);
        self.looking.fetch_sub(1, Ordering::SeqCst);
        if !nothing || !self.server.arm() || !self.server.arrivals.arm(seen) {
            return;
        }
        // Armed segments ring: whoever listens hears it, also when that is another worker.
        if let Ok(_listener) = self.listening.try_lock() {
            return self.listen(at_most);
        }
        // One that wakes in time is enough: with all of them the processors would be busy waking.
        if until < self.kept.load(Ordering::SeqCst) {
            self.kept.store(until, Ordering::SeqCst);
            self.sleep(at_most, self.idle_time() < REST);
            let (mine, none) = (until, Nanos::MAX);
            let _ = self
                .kept
                .compare_exchange(mine, none, Ordering::SeqCst, Ordering::SeqCst);
        } else {
            self.sleep(TICK, self.idle_time() < REST);
        }
    }

    /// Nothing may be served now. Sockets still want an answer (a client that connects), but not at once.
    fn stand_by(&self) {
        if self.sleep(TICK, true) {
            if let Ok(_listener) = self.listening.try_lock() {
                self.listen(TICK);
            }
        }
    }

    /// Sleep until another worker needs help. One of them is the deputy where there has to be one, for a
    /// millisecond; true for it, after that.
    fn sleep(&self, at_most: Duration, deputise: bool) -> bool {
        let deputy = deputise && !self.deputy.swap(true, Ordering::SeqCst);
        let timeout = if deputy { DEPUTY.min(at_most) } else { at_most };
        let guard = self.waiting.lock().expect("no panics under this lock");
        let slept = self.wake.wait_timeout(guard, timeout);
        if deputy {
            self.deputy.store(false, Ordering::SeqCst);
        }
        deputy && slept.is_ok_and(|(_, wait)| wait.timed_out())
    }

    fn idle_time(&self) -> Nanos {
        self.server
            .queue
            .now()
            .saturating_sub(self.last_request.load(Ordering::Relaxed))
    }

    /// Look for what comes next for a few microseconds. False: something came.
    fn look(&self, at_most: Duration, seen: u64) -> bool {
        if self.idle_time() >= LOOK * 4 {
            return true;
        }
        let at_most = at_most.as_nanos() as Nanos;
        // Where several clients are looked at, the processor is worth more to one of them.
        if self.large.load(Ordering::Relaxed) && self.server.serves_one() && self.patience.pays() {
            let nothing = self.looked(LONG_LOOK.min(at_most), seen);
            self.patience.looked(!nothing);
            return nothing;
        }
        self.looked(LOOK.min(at_most), seen)
    }

    fn looked(&self, so_long: Nanos, seen: u64) -> bool {
        let server = &self.server;
        let until = server.queue.now() + so_long;
        while server.queue.now() < until {
            for _ in 0..LOOKS_IN_A_ROW {
                if server.scan() > 0 || server.arrivals.seen() != seen {
                    return false;
                }
                std::hint::spin_loop();
            }
            thread::yield_now();
        }
        true
    }

    /// Wait for sockets, and do what they ask for.
    fn listen(&self, at_most: Duration) {
        let server = &self.server;
        for event in server.epoll.wait(at_most) {
            let id = event >> 3;
            match event & 7 {
                about::UNIX_LISTENER => server.accept(false),
                about::TCP_LISTENER => server.accept(true),
                about::SOCKET => server.socket_event(id),
                about::NUDGE => {}
                _ => return,
            }
        }
        let now = server.queue.now();
        let last = self.last_tick.load(Ordering::Relaxed);
        if now - last.min(now) > TICK.as_nanos() as Nanos {
            self.last_tick.store(now, Ordering::Relaxed);
            server.tidy();
        }
    }
}
