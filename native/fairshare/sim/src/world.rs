//! The simulation itself: runs the events from the first request to the end.

use std::collections::HashMap;

use policy::global::{local_shares, JobUse, ServerTable};
use policy::random::Random;
use policy::{CostModel, Job, LocalShares, Nanos, Policy};

use crate::clients::{Clients, Then};
use crate::config::Config;
use crate::events::{Event, Events};
use crate::series::Series;
use crate::server::{nanos, Direction, Server, Turn};

/// A request on its way, in a queue or in service.
#[derive(Clone, Copy)]
struct Flight {
    process: u32,
    server: u32,
    bytes: u64,
    direction: Direction,
    sent: Nanos,
}

/// How long an exchange of job tables takes.
const EXCHANGE: Nanos = 1_000_000;

pub struct World<'a> {
    config: &'a Config,
    policy: Policy,
    cost: CostModel,
    pub clients: Clients,
    servers: Vec<Server>,
    pub events: Events,
    random: Random,
    flights: Vec<Flight>,
    free_flights: Vec<u32>,
    /// When each node's network card is free again, by direction.
    cards: Vec<[Nanos; 2]>,
    /// Cost served until the last exchange, by server and job.
    served_before: Vec<HashMap<u64, u64>>,
    pending_shares: Vec<LocalShares>,
    pub series: Series,
    pub now: Nanos,
    end: Nanos,
    /// Of the link, one way.
    latency: Nanos,
    /// Jobs that have not finished.
    unfinished: usize,
}

impl<'a> World<'a> {
    /// The configuration must have passed [`Config::check`].
    pub fn new(config: &'a Config) -> Result<Self, String> {
        let (policy, kind) = (config.policy()?, config.scheduler()?);
        let clients = Clients::new(config);
        let end = nanos(config.duration_s);
        Ok(World {
            config,
            cost: config.cost.into(),
            servers: (0..config.servers)
                .map(|n| Server::new(config, &policy, kind, n))
                .collect(),
            policy,
            cards: vec![[0; 2]; clients.nodes as usize],
            series: Series::new(config.jobs.len(), nanos(config.interval_s), end),
            clients,
            events: Events::default(),
            random: Random::new(config.seed),
            flights: Vec::new(),
            free_flights: Vec::new(),
            served_before: vec![HashMap::new(); config.servers as usize],
            pending_shares: Vec::new(),
            now: 0,
            end,
            latency: nanos(config.link.latency_s),
            unfinished: config.jobs.len(),
        })
    }

    /// Simulates until the end of the time, or until all jobs have finished.
    pub fn run(&mut self) {
        for (number, job) in self.config.jobs.iter().enumerate() {
            self.events.at(nanos(job.start_s), Event::Start(number as u32));
            if let Some(stop) = job.stop_s {
                self.events.at(nanos(stop), Event::Stop(number as u32));
            }
        }
        if let Some(lambda) = self.config.lambda_s {
            self.events.at(nanos(lambda), Event::Exchange);
        }
        while let Some((time, event)) = self.events.next() {
            if time > self.end || self.unfinished == 0 {
                break;
            }
            self.now = time;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Send(process) => self.send(process, self.now, true),
            Event::Arrive(flight) => self.arrive(flight),
            Event::Done(flight) => self.done(flight),
            Event::Wake(number) => {
                let queues = self.config.server.queues;
                self.dispatch(number / queues, number % queues);
            }
            Event::Start(job) => self.start(job),
            Event::Stop(job) => self.stop(job),
            Event::Exchange => self.exchange(),
            Event::Apply => self.apply(),
        }
    }

    fn start(&mut self, number: u32) {
        let job = self.clients.jobs[number as usize].spec.job();
        let range = self.clients.jobs[number as usize].processes.clone();
        // A server hears of a job from the processes that have files on it.
        let mut hears = vec![false; self.servers.len()];
        for process in range.clone() {
            for &server in &self.clients.processes[process as usize].servers {
                hears[server as usize] = true;
            }
        }
        self.tell(&job, &hears);
        self.clients.jobs[number as usize].running = true;
        for process in range {
            self.send(process, self.now, true);
        }
    }

    fn tell(&mut self, job: &Job, hears: &[bool]) {
        for (server, _) in self.servers.iter_mut().zip(hears).filter(|(_, hears)| **hears) {
            server
                .queues
                .iter_mut()
                .for_each(|queue| queue.arbiter.add_job(*job));
        }
    }

    fn stop(&mut self, number: u32) {
        let job = &mut self.clients.jobs[number as usize];
        job.running = false;
        if job.outstanding == 0 {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u32) {
        let id = self.clients.jobs[number as usize].spec.id;
        for queue in self.servers.iter_mut().flat_map(|server| &mut server.queues) {
            let left = queue.arbiter.remove_job(id);
            debug_assert!(left.is_empty());
        }
    }

    /// Sends what the process may send at `time`, now or soon. Bytes to write pass its node's card first,
    /// which must be asked in the order of time: a write that is due later becomes an event.
    fn send(&mut self, process: u32, time: Nanos, in_order: bool) {
        while let Some(direction) = self.clients.may_send(process) {
            if direction == Direction::Write && !in_order {
                self.events.at(time, Event::Send(process));
                return;
            }
            let wanted = self.clients.next(process);
            let node = self.clients.processes[process as usize].node;
            let bytes = if direction == Direction::Write {
                wanted.bytes
            } else {
                0
            };
            let leaves = self.card(node, Direction::Write, bytes, time);
            let flight = self.take_off(Flight {
                process,
                server: wanted.server,
                bytes: wanted.bytes,
                direction,
                sent: time,
            });
            self.events.at(leaves + self.latency, Event::Arrive(flight));
        }
    }

    /// When `bytes` have passed a node's card that are ready for it at `ready`.
    fn card(&mut self, node: u32, direction: Direction, bytes: u64, ready: Nanos) -> Nanos {
        if bytes == 0 {
            return ready;
        }
        let free = &mut self.cards[node as usize][direction as usize];
        *free = ready.max(*free) + nanos(bytes as f64 / self.config.link.bandwidth);
        *free
    }

    fn take_off(&mut self, flight: Flight) -> u32 {
        match self.free_flights.pop() {
            Some(place) => {
                self.flights[place as usize] = flight;
                place
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        }
    }

    /// The queue of a server that serves a process: one connection, one queue, by hash.
    fn queue_of(&self, process: u32) -> u32 {
        if self.config.server.queues == 1 {
            return 0;
        }
        let number = self.config.seed ^ (u64::from(process) << 32);
        Random::new(number).below(self.config.server.queues.into()) as u32
    }

    fn arrive(&mut self, number: u32) {
        let flight = self.flights[number as usize];
        let queue = self.queue_of(flight.process);
        let job = self.clients.processes[flight.process as usize].job;
        let id = self.clients.jobs[job as usize].spec.id;
        self.servers[flight.server as usize].queues[queue as usize]
            .arbiter
            .enqueue(id, self.cost.cost(flight.bytes), number.into(), self.now)
            .expect("a server knows the jobs that have files on it");
        self.dispatch(flight.server, queue);
    }

    fn dispatch(&mut self, number: u32, queue: u32) {
        let server = &mut self.servers[number as usize];
        loop {
            match server.turn(queue, self.now) {
                Turn::Serve(request) => {
                    let flight = self.flights[request.token as usize];
                    let done = server.service(self.now, flight.bytes, flight.direction, &mut self.random);
                    self.events.at(done, Event::Done(request.token as u32));
                }
                Turn::Wake(time) => {
                    let queues = self.config.server.queues;
                    self.events.at(time, Event::Wake(number * queues + queue));
                    return;
                }
                Turn::Nothing => return,
            }
        }
    }

    fn done(&mut self, number: u32) {
        let flight = self.flights[number as usize];
        self.free_flights.push(number);
        let (process, queue) = (flight.process, self.queue_of(flight.process));
        let job = self.clients.processes[process as usize].job;
        let id = self.clients.jobs[job as usize].spec.id;
        self.servers[flight.server as usize].done(queue, id, self.now);
        self.series.add(job as usize, self.now, flight.bytes);
        let node = self.clients.processes[process as usize].node;
        let bytes = if flight.direction == Direction::Read {
            flight.bytes
        } else {
            0
        };
        let reaches = self.now + self.latency;
        let answered = self.card(node, Direction::Read, bytes, reaches);
        match self
            .clients
            .answered(process, flight.bytes, flight.sent, answered)
        {
            // Answers without bytes to read come in the order in which they leave the servers.
            Then::Send(0) => self.send(process, answered, bytes == 0),
            Then::Send(pause) => self.events.at(answered + pause, Event::Send(process)),
            Then::Cycle(pause) => {
                for process in self.clients.jobs[job as usize].processes.clone() {
                    self.events.at(answered + pause, Event::Send(process));
                }
            }
            Then::Finished => {
                self.clients.jobs[job as usize].running = false;
                self.unfinished -= 1;
            }
            Then::Wait => {}
        }
        let state = &self.clients.jobs[job as usize];
        if !state.running && state.outstanding == 0 {
            self.forget(job);
        }
        self.dispatch(flight.server, queue);
    }

    /// Every server sends its table to all; what follows from them holds after the exchange's time.
    fn exchange(&mut self) {
        let lambda = self.config.lambda_s.expect("exchanges happen only with a lambda");
        let capacity = self.capacity();
        let mut tables = Vec::with_capacity(self.servers.len());
        for (number, server) in self.servers.iter().enumerate() {
            let mut jobs: HashMap<u64, JobUse> = HashMap::new();
            for usage in server.queues.iter().flat_map(|queue| queue.arbiter.usage()) {
                let empty = JobUse {
                    job: usage.job,
                    served: 0,
                    queued: 0,
                };
                let entry = jobs.entry(usage.job.id).or_insert(empty);
                entry.served += usage.served;
                entry.queued += usage.queued;
            }
            let before = &mut self.served_before[number];
            for (id, entry) in &mut jobs {
                let all = entry.served;
                entry.served -= before.get(id).copied().unwrap_or(0).min(all);
                before.insert(*id, all);
            }
            before.retain(|id, _| jobs.contains_key(id));
            let mut jobs: Vec<JobUse> = jobs.into_values().collect();
            jobs.sort_by_key(|entry| entry.job.id);
            tables.push(ServerTable {
                server: number as u64,
                capacity: capacity * lambda,
                jobs,
            });
        }
        self.pending_shares = local_shares(&self.policy, &tables);
        self.events.at(self.now + EXCHANGE, Event::Apply);
        self.events.at(self.now + nanos(lambda), Event::Exchange);
    }

    /// Of a server, in units of cost per second.
    fn capacity(&self) -> f64 {
        let bytes = Server::capacity(&self.config.server);
        match self.cost {
            CostModel::Bytes { .. } => bytes,
            CostModel::Request => {
                let sizes: u64 = self.config.jobs.iter().map(|job| job.size.max(1)).sum();
                bytes * self.config.jobs.len() as f64 / sizes as f64
            }
        }
    }

    fn apply(&mut self) {
        for (number, shares) in std::mem::take(&mut self.pending_shares).into_iter().enumerate() {
            for queue in &mut self.servers[number].queues {
                queue.arbiter.set_local_shares(Some(&shares));
            }
        }
    }
}
