//! Requests that wait, behind the one scheduler of the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use policy::{
    Arbiter, CostModel, Job, JobId, Level, LocalShares, Nanos, Next, Pace, Policy, SchedulerKind, Settings,
    Usage,
};
use wire::{Op, Request};

use crate::budget::Held;
use crate::charges::Charges;
use crate::connection::Connection;
use crate::outcome::Then;
use crate::session::Session;

/// Where a request came from and its answer goes.
pub enum Place {
    Slot {
        slot: usize,
    },
    Frame {
        connection: Arc<Connection>,
        tag: u64,
        body: Vec<u8>,
        /// Bytes behind the request, as they came: the body grows for the answer.
        payload: usize,
    },
    Inside {
        payload: Vec<u8>,
        then: Then,
        /// Held, not read: memory that counts to who asked.
        held: Option<Held>,
    },
}

pub struct Pending {
    pub session: Arc<Session>,
    pub request: Request,
    pub place: Place,
}

impl Pending {
    /// What gives a lock up is carried out at once: whoever closed a file before another one asks for the lock has given it
    /// up by then. It moves nothing and waits for nothing.
    pub fn is_unlock(&self) -> bool {
        let request = &self.request;
        request.op == Op::Lock
            && request.flags & wire::flags::SET != 0
            && request.mode as i32 == libc::F_UNLCK
    }
}

/// What a free worker gets.
pub enum Work {
    Serve(Box<Pending>, Ticked),
    WaitUntil(Nanos),
    Empty,
    /// As many are served as may be. Whoever ends one looks for the next.
    Full,
}

/// Requests for fsync that leave their places to others. More take places, or one user's would have all workers
/// wait for the device.
pub const MOST_SYNCING: usize = 4;

/// What the time says that a request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// More of what it cost than its bytes do.
    IsCost,
    /// How fast the storage is, which moved so many bytes in it.
    Moved(u64),
    Nothing,
}

/// What a request occupies while it is served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seat {
    /// One of the places for requests that move data or names.
    Place,
    /// Nothing: it waits for a device.
    Device,
    /// Nothing: whoever brought it carries it out, and it is short.
    Bringer,
}

/// A request that counts as being served until [`Queue::done`].
pub struct Ticked {
    job: JobId,
    session: Arc<Session>,
    write: bool,
    seat: Seat,
    /// What it costs, and when it began.
    cost: u64,
    began: Nanos,
}

impl Ticked {
    /// It does not count as one of those that are served.
    pub fn leaves_its_place(&self) -> bool {
        self.seat == Seat::Device
    }
}

pub struct Queue {
    inner: Mutex<Inner>,
    began: Instant,
    /// Requests served at a time. What lies beyond waits, and that is where the policy decides.
    parallel: usize,
}

struct Inner {
    arbiter: Arbiter,
    /// By token, with the time of arrival.
    waiting: HashMap<u64, (Pending, Nanos)>,
    token: u64,
    serving: usize,
    syncing: usize,
    cost: CostModel,
    pace: Pace,
    charges: Charges,
}

impl Queue {
    pub fn new(arbiter: Arbiter, cost: CostModel, parallel: usize, rate: u64) -> Self {
        let inner = Inner {
            arbiter,
            waiting: HashMap::new(),
            token: 0,
            serving: 0,
            syncing: 0,
            cost,
            pace: Pace::new(rate),
            charges: Charges::new(rate),
        };
        Self {
            inner: Mutex::new(inner),
            began: Instant::now(),
            parallel,
        }
    }

    pub fn now(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos
    }

    pub fn add_job(&self, job: Job) {
        let now = self.now();
        let mut inner = self.lock();
        inner.arbiter.add_job(job);
        let outermost = inner.arbiter.policy().levels().first();
        let of_users = matches!(outermost, Some(Level::User | Level::Group));
        let owed = inner.charges.comes(&job, of_users, now);
        if owed > 0 {
            inner.arbiter.surcharge(job.id, owed);
        }
    }

    /// Forget a job that has no session left; its requests have nobody to answer to.
    pub fn remove_job(&self, id: JobId) -> Vec<Pending> {
        let now = self.now();
        let mut inner = self.lock();
        inner.charges.leaves(id, now);
        let requests = inner.arbiter.remove_job(id);
        requests
            .iter()
            .filter_map(|request| inner.waiting.remove(&request.token))
            .map(|(pending, _)| pending)
            .collect()
    }

    /// Queue requests of one job. Gives them back where the job is gone.
    pub fn push(&self, job: JobId, requests: Vec<Pending>) -> Vec<Pending> {
        let now = self.now();
        let mut refused = Vec::new();
        let mut inner = self.lock();
        for pending in requests {
            let cost = inner.cost.cost(bytes_of(&pending.request));
            inner.token += 1;
            let token = inner.token;
            match inner.arbiter.enqueue(job, cost, token, now) {
                Ok(()) => {
                    inner.waiting.insert(token, (pending, now));
                }
                Err(_) => refused.push(pending),
            }
        }
        refused
    }

    /// The next request by the policy, and how many more another worker could serve now.
    pub fn pop(&self) -> (Work, usize) {
        let mut inner = self.lock();
        if inner.serving >= self.parallel {
            return (Work::Full, 0);
        }
        self.take(&mut inner, false)
    }

    /// The only request that waits, where none is being served, for the thread that brought it.
    pub fn pop_for_bringer(&self) -> Option<(Box<Pending>, Ticked)> {
        let mut inner = self.lock();
        if inner.serving > 0 || inner.arbiter.backlog() != 1 {
            return None;
        }
        match self.take(&mut inner, true).0 {
            Work::Serve(pending, ticked) => Some((pending, ticked)),
            _ => None,
        }
    }

    fn take(&self, inner: &mut Inner, bringer: bool) -> (Work, usize) {
        let now = self.now();
        // As long as the storage is busy the policy has not decided: what comes meanwhile counts, too.
        if let Some(when) = inner.pace.wait(now).filter(|_| inner.arbiter.backlog() > 0) {
            return (Work::WaitUntil(when), 0);
        }
        loop {
            match inner.arbiter.next(now) {
                Next::Serve(request) => {
                    let Some((pending, arrived)) = inner.waiting.remove(&request.token) else {
                        inner.arbiter.complete(request.job, now);
                        continue;
                    };
                    // fsync waits for a device and uses nothing else: it leaves its place to others.
                    let seat = match pending.request.op {
                        Op::Fsync if inner.syncing < MOST_SYNCING => Seat::Device,
                        _ if bringer => Seat::Bringer,
                        _ => Seat::Place,
                    };
                    inner.serving += usize::from(seat == Seat::Place);
                    inner.syncing += usize::from(seat == Seat::Device);
                    inner.pace.begin(now, arrived, bytes_of(&pending.request));
                    // Before anybody else can take the write behind it.
                    let write = pending.request.op == Op::Write;
                    if write {
                        pending.session.writes.taken();
                    }
                    let ticked = Ticked {
                        job: request.job,
                        session: Arc::clone(&pending.session),
                        write,
                        seat,
                        cost: request.cost,
                        began: now,
                    };
                    // Waking a worker for what may not be served yet only takes the processor from those at work.
                    let free = self.parallel - inner.serving;
                    let more = inner.arbiter.backlog().min(free);
                    return (Work::Serve(Box::new(pending), ticked), more);
                }
                Next::WaitUntil(when) => return (Work::WaitUntil(when), 0),
                Next::Empty => return (Work::Empty, 0),
            }
        }
    }

    /// A request has been served.
    pub fn done(&self, ticked: &Ticked, time: Time) {
        if ticked.write {
            ticked.session.writes.ended();
        }
        let now = self.now();
        let mut inner = self.lock();
        inner.serving -= usize::from(ticked.seat == Seat::Place);
        inner.syncing -= usize::from(ticked.seat == Seat::Device);
        inner.arbiter.complete(ticked.job, now);
        let took = now.saturating_sub(ticked.began);
        match time {
            // Who waits for a device uses nothing else.
            Time::IsCost if ticked.seat == Seat::Device => {}
            Time::IsCost => inner.charge(ticked.job, ticked.session.user(), ticked.cost, took, now),
            Time::Moved(bytes) => {
                let cost = inner.cost.cost(bytes);
                inner.charges.saw(bytes, cost, took, now);
            }
            Time::Nothing => {}
        }
    }

    /// Something of a job has been carried out apart from the workers since then.
    pub fn charge(&self, job: &Job, began: Nanos) {
        let now = self.now();
        self.lock()
            .charge(job.id, job.user, 0, now.saturating_sub(began), now);
    }

    /// Go on by another scheduler, policy, rate, and what requests cost at that. What waits stays queued.
    pub fn go_on_by(
        &self,
        kind: SchedulerKind,
        policy: &Policy,
        settings: &Settings,
        (rate, cost): (u64, CostModel),
    ) {
        let now = self.now();
        let mut inner = self.lock();
        inner.arbiter.change(kind, policy, settings, now);
        inner.cost = cost;
        inner.pace.set_rate(rate);
        inner.charges.set_rate(rate);
    }

    pub fn backlog(&self) -> usize {
        self.lock().arbiter.backlog()
    }

    pub fn usage(&self) -> Vec<Usage> {
        self.lock().arbiter.usage()
    }

    pub fn policy(&self) -> Policy {
        self.lock().arbiter.policy().clone()
    }

    pub fn set_local_shares(&self, shares: Option<&LocalShares>) {
        self.lock().arbiter.set_local_shares(shares);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panics under this lock")
    }
}

impl Inner {
    /// Charge a job for what took longer than its cost lets expect.
    fn charge(&mut self, job: JobId, user: u32, cost: u64, took: Nanos, now: Nanos) {
        let more = self.charges.excess(cost, took);
        if more > 0 {
            self.arbiter.surcharge(job, more);
            let gone = self.arbiter.usage().iter().all(|usage| usage.job.id != job);
            self.charges.charge(job, user, more, gone, now);
        }
    }
}

fn bytes_of(request: &Request) -> u64 {
    match request.op {
        Op::Read | Op::Write => request.size.min(wire::MAX_BODY as u64),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::tests::session;

    const PARALLEL: usize = 2;

    fn asked(session: &Arc<Session>, op: Op, n: usize) -> Vec<Pending> {
        let pending = |_| Pending {
            session: Arc::clone(session),
            request: Request::new(op),
            place: Place::Inside {
                payload: Vec::new(),
                then: Box::new(|_, _| ()),
                held: None,
            },
        };
        (0..n).map(pending).collect()
    }

    /// That has been there for a second.
    fn queue(policy: &str, parallel: usize, rate: u64) -> Queue {
        let policy = Policy::parse(policy).unwrap();
        let arbiter = Arbiter::new(SchedulerKind::Stride, &policy, &Settings::default());
        let mut queue = Queue::new(arbiter, CostModel::of_storage(rate), parallel, rate);
        queue.began -= std::time::Duration::from_secs(1);
        queue
    }

    /// The part of the time that the first of two users' requests get, each of which takes so long, until all of a time is
    /// over. What reads or writes moves so many bytes.
    fn part_of_time(queue: &Queue, users: [(Op, u64, Nanos); 2]) -> f64 {
        let session = session();
        for (user, (op, size, time)) in (1..).zip(users) {
            queue.add_job(Job::new(user).user(user as u32));
            let mut all = asked(&session, op, (LONG_ENOUGH / time) as usize);
            all.iter_mut().for_each(|one| one.request.size = size);
            assert!(queue.push(user, all).is_empty());
        }
        let mut took = [0, 0];
        while took.iter().sum::<u64>() < LONG_ENOUGH {
            let (Work::Serve(pending, ticked), _) = queue.pop() else {
                panic!("there is more")
            };
            let which = usize::from(pending.request.op != users[0].0 || pending.request.size != users[0].1);
            let (op, size, time) = users[which];
            let says = match op {
                Op::Read | Op::Write => Time::Moved(size),
                _ => Time::IsCost,
            };
            let began = queue.now().saturating_sub(time);
            queue.done(&Ticked { began, ..ticked }, says);
            took[which] += time;
        }
        took[0] as f64 / took.iter().sum::<u64>() as f64
    }

    const LONG_ENOUGH: Nanos = 400_000_000;

    /// Two users; one asks for what takes long and costs next to nothing, the other for large pieces.
    #[test]
    fn what_takes_long_is_charged_by_its_time() {
        let queue = queue("job-fair", 1, 0);
        let part = part_of_time(
            &queue,
            [(Op::Allocate, 0, 5_000_000), (Op::Read, 128 << 10, 100_000)],
        );
        assert!((0.4..0.6).contains(&part), "{part}");
        // Who leaves and comes back has it still.
        drop(queue.remove_job(1));
        queue.add_job(Job::new(1));
        assert!(queue.push(1, asked(&session(), Op::Ping, 2)).is_empty());
        for _ in 0..3 {
            assert!(matches!(queue.pop(), (Work::Serve(pending, ticked), _)
                if pending.request.op == Op::Read && { queue.done(&ticked, Time::Nothing); true }));
        }
    }

    /// Nobody moves large pieces, which would tell how fast the storage is: so the small ones have to.
    #[test]
    fn what_takes_long_is_charged_beside_small_pieces_too() {
        let queue = queue("user-fair", 1, 0);
        let part = part_of_time(
            &queue,
            [(Op::ReadDirectory, 0, 1_000_000), (Op::Write, 4096, 40_000)],
        );
        assert!((0.4..0.6).contains(&part), "{part}");
    }

    /// A user whose job leaves after a long request, and who comes again as another one.
    #[test]
    fn another_name_leaves_no_charge_behind() {
        let queue = queue("user-fair", 1, 0);
        let (slow, other) = (session(), session());
        queue.add_job(Job::new(1));
        queue.add_job(Job::new(2).user(2));
        assert!(queue.push(1, asked(&slow, Op::Allocate, 1)).is_empty());
        let (Work::Serve(_, ticked), _) = queue.pop() else {
            panic!("there is one")
        };
        queue.done(&Ticked { began: 0, ..ticked }, Time::IsCost);
        drop(queue.remove_job(1));
        queue.add_job(Job::new(3));
        assert!(queue.push(3, asked(&slow, Op::Ping, 3)).is_empty());
        assert!(queue.push(2, asked(&other, Op::Status, 3)).is_empty());
        for _ in 0..3 {
            let (Work::Serve(pending, ticked), _) = queue.pop() else {
                panic!("there are more")
            };
            queue.done(&ticked, Time::Nothing);
            assert_eq!(
                pending.request.op,
                Op::Status,
                "it owes nothing under another name"
            );
        }
    }

    /// However many wait for the device, workers are left: a server has more of them than can wait at a time.
    #[test]
    fn a_flood_of_fsync_leaves_workers_for_others() {
        let queue = queue("user-fair", PARALLEL, 0);
        let session = session();
        queue.add_job(Job::new(session.job));
        assert!(queue.push(session.job, asked(&session, Op::Fsync, 20)).is_empty());
        let mut served = Vec::new();
        while let (Work::Serve(_, ticked), _) = queue.pop() {
            served.push(ticked);
        }
        assert_eq!(served.len(), MOST_SYNCING + PARALLEL);
        // As they end others begin, and in the end all have been served.
        let mut count = served.len();
        while let Some(one) = served.pop() {
            queue.done(&one, Time::Nothing);
            while let (Work::Serve(_, ticked), _) = queue.pop() {
                served.push(ticked);
                count += 1;
            }
        }
        assert_eq!(count, 20);
        let inner = queue.lock();
        assert_eq!((inner.serving, inner.syncing), (0, 0));
    }
}
