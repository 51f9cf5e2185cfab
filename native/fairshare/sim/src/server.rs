//! A simulated server: schedulers, workers and a pipe for each direction.

use policy::random::Random;
use policy::{Arbiter, Nanos, Next, Policy, Request, SchedulerKind, Settings};

use crate::config::{Config, Server as Model};

/// Direction of the bytes of a request; also the number of its pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Write = 0,
    Read = 1,
}

pub struct Queue {
    pub arbiter: Arbiter,
    idle_workers: u32,
    /// When a wake-up is due, so that it is asked for once.
    wake: Option<Nanos>,
}

pub struct Server {
    pub queues: Vec<Queue>,
    model: Model,
    /// When each direction's pipe is free again.
    free: [Nanos; 2],
}

/// What a queue does with a free worker.
pub enum Turn {
    Serve(Request),
    /// Ask again at this time.
    Wake(Nanos),
    Nothing,
}

impl Server {
    pub fn new(config: &Config, policy: &Policy, kind: SchedulerKind, number: u32) -> Self {
        let model = config.server;
        let queues = (0..model.queues).map(|queue| {
            let settings = settings(config, number, queue);
            let workers = model.workers / model.queues + u32::from(queue < model.workers % model.queues);
            Queue {
                arbiter: Arbiter::new(kind, policy, &settings),
                idle_workers: workers,
                wake: None,
            }
        });
        Server {
            queues: queues.collect(),
            model,
            free: [0; 2],
        }
    }

    /// Bytes per second of all directions together.
    pub fn capacity(model: &Model) -> f64 {
        model.bandwidth * if model.duplex { 2.0 } else { 1.0 }
    }

    /// Gives a request of a queue to a free worker, if there are both.
    pub fn turn(&mut self, queue: u32, now: Nanos) -> Turn {
        let queue = &mut self.queues[queue as usize];
        if queue.idle_workers == 0 {
            return Turn::Nothing;
        }
        match queue.arbiter.next(now) {
            Next::Serve(request) => {
                queue.idle_workers -= 1;
                Turn::Serve(request)
            }
            Next::WaitUntil(time) if queue.wake.is_none_or(|wake| wake <= now || wake > time) => {
                queue.wake = Some(time);
                Turn::Wake(time)
            }
            Next::WaitUntil(_) | Next::Empty => Turn::Nothing,
        }
    }

    /// When a request that a worker takes now is done: its overhead, and then its turn in the pipe.
    pub fn service(&mut self, now: Nanos, bytes: u64, direction: Direction, random: &mut Random) -> Nanos {
        let jitter = self.model.jitter;
        let factor = if jitter > 0.0 {
            1.0 - jitter + jitter * random.exponential()
        } else {
            1.0
        };
        let ready = now + nanos(self.model.overhead_s * factor);
        let pipe = &mut self.free[if self.model.duplex { direction as usize } else { 0 }];
        let moving = nanos(bytes as f64 / self.model.bandwidth * factor);
        if moving == 0 {
            return ready; // no bytes: it does not wait for the pipe
        }
        *pipe = ready.max(*pipe) + moving;
        *pipe
    }

    pub fn done(&mut self, queue: u32, job: u64, now: Nanos) {
        let queue = &mut self.queues[queue as usize];
        queue.idle_workers += 1;
        queue.arbiter.complete(job, now);
    }
}

pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9 + 0.5) as Nanos
}

fn settings(config: &Config, server: u32, queue: u32) -> Settings {
    Settings {
        seed: Random::new(config.seed ^ (u64::from(server) << 32) ^ u64::from(queue)).bits(),
        // TBF as published: its cap gives the paper's lead. Each of a server's queues has its part of it.
        rate: 0.88 * Server::capacity(&config.server) / f64::from(config.server.queues),
        ..Settings::default()
    }
}
