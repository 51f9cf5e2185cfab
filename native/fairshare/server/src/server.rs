//! The server's state, and what happens to connections and requests. The workers are in `worker.rs`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use policy::{Arbiter, Job, JobId, Pace};
use wire::{segment, Hello, Op, Reply, Request, Welcome, REQUEST_BYTES, WANT_SEGMENT};

use crate::area::Area;
use crate::config::Config;
use crate::connection::{Connection, Received, Socket};
use crate::creds;
use crate::data::DataFolder;
use crate::epoll::Epoll;
use crate::errno::{check, Errno, Result};
use crate::handles::Handles;
use crate::identity::{identify, peer_of, Key, Peer, CHALLENGE_BYTES};
use crate::jobs::{Entry, Jobs};
use crate::leases::Leases;
use crate::locks::RecordLocks;
use crate::mapping::Inodes;
use crate::ops::{carry_out, Call, Outcome};
use crate::peers::{self, Exchange};
use crate::queue::{Pending, Place, Queue};
use crate::segment::Segment;
use crate::session::{Session, Shared};
use crate::slurm::{self, Slurm};
use crate::stripes::Stripes;
use crate::tree::Tree;

/// Time that a client has to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections that have not said who they are yet.
const MOST_STRANGERS: usize = 256;
/// Smallest room for the data of a reply in a frame.
const REPLY_ROOM: usize = 8192;

/// What an epoll event is about: the kind in the low three bits, an id above.
pub mod about {
    pub const UNIX_LISTENER: u64 = 0;
    pub const TCP_LISTENER: u64 = 1;
    pub const SOCKET: u64 = 2;
    pub const DOORBELL: u64 = 3;
    pub const HANDLE: u64 = 4;
    pub const STOP: u64 = 5;
    pub const NUDGE: u64 = 6;
}

pub struct Server {
    /// Stays over restarts: the data folder's.
    pub id: u64,
    pub config: Config,
    pub tree: Tree,
    pub handles: Handles,
    pub inodes: Inodes,
    pub records: RecordLocks,
    pub stripes: Stripes,
    pub leases: Leases,
    pub slurm: Slurm,
    pub jobs: Jobs,
    pub queue: Queue,
    pub key: Key,
    pub(crate) epoll: Epoll,
    pub(crate) unix: UnixListener,
    pub(crate) tcp: Option<TcpListener>,
    pub(crate) stop: OwnedFd,
    nudge: OwnedFd,
    pub(crate) stopping: AtomicBool,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    next_connection: AtomicU64,
    /// Joining and leaving a job changes two tables.
    membership: Mutex<()>,
    /// Connections whose segments the workers look at by themselves.
    hot: Mutex<Vec<Arc<Connection>>>,
    /// Of the data folder; held as long as this lives.
    _lock: File,
}

impl Server {
    pub fn start(config: Config, data: DataFolder) -> Result<Arc<Self>> {
        let epoll = Epoll::new()?;
        let unix = data.listen(&config)?;
        unix.set_nonblocking(true)?;
        epoll.add(unix.as_raw_fd(), libc::EPOLLIN, about::UNIX_LISTENER)?;
        let tcp = match &config.listen {
            Some(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                epoll.add(listener.as_raw_fd(), libc::EPOLLIN, about::TCP_LISTENER)?;
                Some(listener)
            }
            None => None,
        };
        // SAFETY: a plain call; the descriptor is ours.
        let stop = unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC))?) };
        epoll.add(stop.as_raw_fd(), libc::EPOLLIN, about::STOP)?;
        // SAFETY: as above.
        let nudge =
            unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) };
        epoll.add(nudge.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, about::NUDGE)?;
        let exchange = match &config.exchange {
            Some(address) => Some(Exchange {
                socket: UdpSocket::bind(address)?,
                peers: config
                    .peers
                    .iter()
                    .map(|peer| resolve(peer))
                    .collect::<Result<_>>()?,
                key: data.key.for_servers(),
                lambda: config.lambda,
            }),
            None => None,
        };
        let (slurm, jobs_asked_for) = Slurm::new();
        let arbiter = Arbiter::new(config.scheduler, &config.policy, &config.settings);
        let server = Arc::new(Self {
            id: data.id,
            tree: Tree::open(&data.tree)?,
            handles: Handles::new(config.most_handles),
            inodes: Inodes::default(),
            records: RecordLocks::default(),
            stripes: data.stripes,
            leases: Leases::default(),
            slurm,
            jobs: Jobs::default(),
            queue: Queue::new(arbiter, config.cost, config.parallel, Pace::new(config.rate)),
            key: data.key,
            epoll,
            unix,
            tcp,
            stop,
            nudge,
            stopping: AtomicBool::new(false),
            connections: Mutex::default(),
            next_connection: AtomicU64::new(1),
            membership: Mutex::default(),
            hot: Mutex::default(),
            _lock: data.lock,
            config,
        });
        if let Some(exchange) = exchange {
            peers::start(&server, exchange);
        }
        slurm::start(&server, jobs_asked_for, server.config.slurm.clone());
        Ok(server)
    }

    /// Take the connections that wait on a listener.
    pub(crate) fn accept(&self, from_tcp: bool) {
        loop {
            let socket = if from_tcp {
                let Some(listener) = &self.tcp else { return };
                match listener.accept() {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        let _ = stream.set_nonblocking(true);
                        keep_alive(stream.as_fd());
                        Socket::Tcp(stream)
                    }
                    Err(_) => return,
                }
            } else {
                match self.unix.accept() {
                    Ok((stream, _)) => {
                        let _ = stream.set_nonblocking(true);
                        Socket::Unix(stream)
                    }
                    Err(_) => return,
                }
            };
            // A connection that cannot be taken is closed by dropping it; the client sees the end.
            let _ = self.take(socket);
        }
    }

    fn take(&self, socket: Socket) -> Result<()> {
        let peer = match &socket {
            Socket::Unix(stream) => peer_of(stream.as_fd())?,
            Socket::Tcp(_) => Peer::Remote,
        };
        let mut challenge = [0; CHALLENGE_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut challenge)?;
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new(id, socket, peer, challenge));
        {
            let mut connections = self.connections.lock().expect("no panics under this lock");
            let strangers = connections
                .values()
                .filter(|c| c.session.get().is_none())
                .take(MOST_STRANGERS);
            if strangers.count() >= MOST_STRANGERS {
                return Err(Errno(libc::EAGAIN));
            }
            connections.insert(id, Arc::clone(&connection));
        }
        connection.send(0, &[&challenge], vec![]);
        self.epoll
            .add(connection.fd(), interest(true, false), id << 3 | about::SOCKET)
    }

    fn connection(&self, id: u64) -> Option<Arc<Connection>> {
        self.connections
            .lock()
            .expect("no panics under this lock")
            .get(&id)
            .cloned()
    }

    /// A client's socket can be read, written, or has closed.
    pub(crate) fn socket_event(&self, id: u64) {
        let Some(connection) = self.connection(id) else {
            return;
        };
        let mut kept = connection.flush();
        while connection.hungry() {
            match connection.receive() {
                Received::Frame { tag, body } => {
                    if !self.frame(&connection, tag, body) {
                        connection.flush();
                        return self.end(&connection);
                    }
                }
                Received::Nothing => break,
                Received::End => return self.end(&connection),
            }
        }
        kept |= connection.flush();
        self.watch(&connection, kept);
    }

    fn watch(&self, connection: &Connection, kept: bool) {
        if !connection.closed.load(Ordering::SeqCst) {
            let events = interest(connection.hungry(), kept);
            let _ = self
                .epoll
                .change(connection.fd(), events, connection.id << 3 | about::SOCKET);
        }
    }

    /// One frame. False ends the connection.
    fn frame(&self, connection: &Arc<Connection>, tag: u64, body: Vec<u8>) -> bool {
        let Some(session) = connection.session.get() else {
            return self.hello(connection, tag, &body);
        };
        let Some(Ok(request)) = body.first_chunk::<REQUEST_BYTES>().map(Request::parse) else {
            return false;
        };
        connection.outstanding.fetch_add(1, Ordering::SeqCst);
        let place = Place::Frame {
            connection: Arc::clone(connection),
            tag,
            body,
        };
        let pending = Pending {
            session: Arc::clone(session),
            request,
            place,
        };
        self.enqueue(session.job, vec![pending]);
        true
    }

    pub(crate) fn enqueue(&self, job: JobId, pending: Vec<Pending>) {
        for refused in self.queue.push(job, pending) {
            self.answer(refused, Outcome::of(-i64::from(libc::ESHUTDOWN)));
        }
    }

    fn hello(&self, connection: &Arc<Connection>, tag: u64, body: &[u8]) -> bool {
        let refuse = |errno: i32, reason: &str| {
            let reply = Reply {
                result: -i64::from(errno),
                value: 0,
                data_len: reason.len() as u32,
            };
            connection.send(tag, &[&reply.to_bytes(), reason.as_bytes()], vec![]);
            false
        };
        let hello = match Hello::parse(body) {
            Ok(hello) => hello,
            Err(malformed) => return refuse(libc::EPROTO, &malformed.to_string()),
        };
        let identity = match identify(
            &connection.peer,
            &hello,
            &connection.challenge,
            &self.key,
            &self.slurm,
        ) {
            Ok(identity) => identity,
            Err((Errno(errno), reason)) => return refuse(errno, &reason),
        };
        if self.sessions_of(identity.creds.uid) >= self.config.most_sessions {
            return refuse(libc::EUSERS, "this user has too many connections to this server");
        }
        let local = matches!(connection.socket, Socket::Unix(_));
        let mut descriptors = Vec::new();
        let mut shared = None;
        if local && hello.wants & WANT_SEGMENT != 0 {
            match self.make_segment(connection.id) {
                Ok((made, passed)) => {
                    shared = Some(made);
                    descriptors = passed;
                }
                Err(Errno(errno)) => return refuse(errno, "no shared memory for this client"),
            }
        }
        let entry = self.join_job(&identity.job_name, identity.job);
        let welcome = Welcome {
            session: connection.id,
            server: self.id,
            slots: if shared.is_some() {
                segment::SLOTS as u32
            } else {
                0
            },
            slot_bytes: segment::SLOT_BYTES as u32,
            uid: identity.creds.uid,
            stripe: self.stripes.size,
        };
        let session = Session {
            id: connection.id,
            creds: identity.creds,
            job: identity.job.id,
            entry,
            local,
            inside: false,
            shared,
            objects: AtomicBool::new(false),
        };
        let _ = connection.session.set(Arc::new(session));
        let data = welcome.to_bytes();
        let reply = Reply {
            result: 0,
            value: 0,
            data_len: data.len() as u32,
        };
        connection.send(tag, &[&reply.to_bytes(), &data], descriptors);
        true
    }

    fn sessions_of(&self, uid: u32) -> usize {
        let connections = self.connections.lock().expect("no panics under this lock");
        let sessions = connections
            .values()
            .filter_map(|connection| connection.session.get());
        sessions.filter(|session| session.creds.uid == uid).count()
    }

    fn make_segment(&self, id: u64) -> Result<(Shared, Vec<OwnedFd>)> {
        let (segment, memory) = Segment::create()?;
        // SAFETY: a plain call; the descriptor is ours.
        let doorbell =
            unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) };
        // Edge-triggered: every ring is one event, and nobody has to read the counter.
        self.epoll.add(
            doorbell.as_raw_fd(),
            libc::EPOLLIN | libc::EPOLLET,
            id << 3 | about::DOORBELL,
        )?;
        let theirs = doorbell.try_clone()?;
        let (busy, hot) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok((
            Shared {
                segment,
                doorbell,
                busy,
                hot,
                collecting: Mutex::default(),
            },
            vec![memory, theirs],
        ))
    }

    pub(crate) fn doorbell(&self, id: u64) {
        let Some(connection) = self.connection(id) else {
            return;
        };
        let Some(shared) = connection
            .session
            .get()
            .and_then(|session| session.shared.as_ref())
        else {
            return;
        };
        if !shared.hot.swap(true, Ordering::SeqCst) {
            shared.segment.disarm();
            self.hot
                .lock()
                .expect("no panics under this lock")
                .push(Arc::clone(&connection));
        }
        self.collect(&connection);
    }

    /// Look through all hot segments. Returns how many requests were found.
    pub(crate) fn scan(&self) -> usize {
        let hot = self.hot.lock().expect("no panics under this lock");
        hot.iter().map(|connection| self.collect(connection)).sum()
    }

    /// Ask for doorbells from now on. False: something was posted meanwhile.
    pub(crate) fn arm(&self) -> bool {
        let mut hot = self.hot.lock().expect("no panics under this lock");
        let mut quiet = true;
        hot.retain(|connection| {
            let Some(shared) = connection
                .session
                .get()
                .and_then(|session| session.shared.as_ref())
            else {
                return false;
            };
            if connection.closed.load(Ordering::SeqCst) {
                return false;
            }
            if shared.segment.arm() {
                shared.segment.disarm();
                quiet = false;
                return true;
            }
            shared.hot.store(false, Ordering::SeqCst);
            false
        });
        quiet
    }

    /// Queue what a client has posted in its segment.
    fn collect(&self, connection: &Arc<Connection>) -> usize {
        let Some(session) = connection.session.get() else {
            return 0;
        };
        let Some(shared) = &session.shared else { return 0 };
        if !shared.segment.has_posted() {
            return 0;
        }
        // What one worker takes is queued before another takes more: pieces of one write stay in order.
        let _order = shared.collecting.lock().expect("no panics under this lock");
        let posted = shared.segment.take_posted();
        if posted == 0 {
            return 0;
        }
        // A slot that is being worked on cannot be posted again, whatever its owner does.
        let fresh = posted & !shared.busy.fetch_or(posted, Ordering::SeqCst);
        let mut pending = Vec::with_capacity(fresh.count_ones() as usize);
        for slot in (0..segment::SLOTS).filter(|slot| fresh & 1 << slot != 0) {
            match Request::parse(&shared.segment.request(slot)) {
                Ok(request) => pending.push(Pending {
                    session: Arc::clone(session),
                    request,
                    place: Place::Slot {
                        connection: Arc::clone(connection),
                        slot,
                    },
                }),
                Err(_) => self.slot_done(shared, slot, &Outcome::of(-i64::from(libc::EPROTO))),
            }
        }
        let count = pending.len();
        // Slots are found by number, and a client that reuses one early has posted later pieces in front of
        // earlier ones. What was posted at the same time by different threads has no order.
        if pending
            .iter()
            .any(|p| p.request.op == Op::Write && p.request.flags & wire::flags::CHAINED != 0)
        {
            pending.sort_by_key(|p| p.request.offset);
        }
        self.enqueue(session.job, pending);
        count
    }

    /// Carry out a request and answer it.
    pub(crate) fn serve(&self, mut pending: Pending) {
        let session = Arc::clone(&pending.session);
        let request = pending.request;
        let room = (request.size as usize).clamp(REPLY_ROOM, 1 << 20);
        let outcome = {
            // SAFETY (all three): the memory lives as long as the session or the place, which we hold, and
            // is not touched otherwise while the area lives.
            let area = match &mut pending.place {
                Place::Slot { slot, .. } => {
                    let Some(shared) = &session.shared else { return };
                    unsafe {
                        Area::new(
                            shared.segment.data(*slot),
                            segment::SLOT_BYTES,
                            segment::SLOT_BYTES,
                        )
                    }
                }
                Place::Frame { body, .. } => {
                    let payload = body.len() - REQUEST_BYTES;
                    body.resize(REQUEST_BYTES + payload.max(room), 0);
                    unsafe { Area::new(body.as_mut_ptr().add(REQUEST_BYTES), payload.max(room), payload) }
                }
                Place::Inside { payload, .. } => {
                    let length = payload.len();
                    payload.resize(length.max(room), 0);
                    unsafe { Area::new(payload.as_mut_ptr(), length.max(room), length) }
                }
            };
            let call = Call {
                server: self,
                session: &session,
                request: &request,
                area: &area,
            };
            // A mistake in one operation must not take the server along.
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| carry_out(&call)))
                .unwrap_or_else(|_| Outcome::of(-i64::from(libc::EIO)))
        };
        self.answer(pending, outcome);
    }

    fn answer(&self, pending: Pending, mut outcome: Outcome) {
        if let Some((watched, id)) = outcome.watch {
            let events = libc::EPOLLHUP | libc::EPOLLET;
            let _ = self.epoll.add(watched, events, id << 3 | about::HANDLE);
        }
        let descriptor: Vec<OwnedFd> = outcome.descriptor.take().into_iter().collect();
        match pending.place {
            Place::Slot { connection, slot } => {
                let Some(shared) = &pending.session.shared else {
                    return;
                };
                if !descriptor.is_empty() && connection.send(outcome.value, &[], descriptor) {
                    self.watch(&connection, true);
                }
                self.slot_done(shared, slot, &outcome);
            }
            Place::Inside { payload, then } => then(&outcome, &payload[..outcome.data]),
            Place::Frame {
                connection,
                tag,
                body,
            } => {
                let reply = outcome.reply().to_bytes();
                let data = &body[REQUEST_BYTES..REQUEST_BYTES + outcome.data];
                let kept = connection.send(tag, &[&reply, data], descriptor);
                let before = connection.outstanding.fetch_sub(1, Ordering::SeqCst);
                if kept || before >= crate::connection::MOST_OUTSTANDING {
                    self.watch(&connection, kept);
                }
            }
        }
    }

    fn slot_done(&self, shared: &Shared, slot: usize, outcome: &Outcome) {
        shared.busy.fetch_and(!(1 << slot), Ordering::SeqCst);
        shared.segment.complete(slot, outcome.reply());
    }

    /// The last holder of a handle's descriptor has closed it.
    pub(crate) fn handle_closed(&self, id: u64) {
        self.handles.remove(id);
    }

    fn end(&self, connection: &Arc<Connection>) {
        if connection.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.epoll.remove(connection.fd());
        self.connections
            .lock()
            .expect("no panics under this lock")
            .remove(&connection.id);
        let Some(session) = connection.session.get() else {
            return;
        };
        if let Some(shared) = &session.shared {
            self.epoll.remove(shared.doorbell.as_raw_fd());
        }
        self.records.drop_owner(session.id);
        self.leases.drop_owner(session.id);
        if !session.local || session.objects.load(Ordering::SeqCst) {
            self.handles.session_ended(session.id);
        }
        self.leave_job(session);
    }

    /// A session of a job begins.
    pub(crate) fn join_job(&self, name: &str, job: Job) -> Arc<Entry> {
        let _guard = self.membership.lock().expect("no panics under this lock");
        let entry = self.jobs.join(name, job);
        self.queue.add_job(job);
        entry
    }

    /// Slurm has said how large a job is. It stays in its place in the queue.
    pub(crate) fn resize_job(&self, name: &str, nodes: u32) {
        let _guard = self.membership.lock().expect("no panics under this lock");
        if let Some(job) = self.jobs.resize(name, nodes) {
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

    /// What has to be done now and then.
    pub(crate) fn tidy(&self) {
        self.handles.tidy();
        let late: Vec<_> = {
            let connections = self.connections.lock().expect("no panics under this lock");
            let strangers = connections.values().filter(|c| c.session.get().is_none());
            strangers
                .filter(|c| c.since.elapsed() > HANDSHAKE)
                .cloned()
                .collect()
        };
        for connection in late {
            self.end(&connection);
        }
    }

    /// Make all workers come to an end.
    pub fn shut_down(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        ring(self.stop.as_raw_fd());
    }
}

fn resolve(address: &str) -> Result<SocketAddr> {
    address
        .to_socket_addrs()?
        .next()
        .ok_or(Errno(libc::EADDRNOTAVAIL))
}

fn interest(read: bool, write: bool) -> i32 {
    (if read { libc::EPOLLIN | libc::EPOLLRDHUP } else { 0 }) | if write { libc::EPOLLOUT } else { 0 }
}

/// A peer that has vanished from the network is noticed within a minute or two.
fn keep_alive(socket: BorrowedFd<'_>) {
    let set = |level, name, value: libc::c_int| {
        // SAFETY: an int and its size.
        unsafe {
            libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4);
        }
    };
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 30);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10);
    set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 60_000);
}

pub(crate) fn ring(eventfd: RawFd) {
    let one = 1_u64;
    // SAFETY: eight bytes, as an eventfd wants them.
    unsafe {
        libc::write(eventfd, (&raw const one).cast(), 8);
    }
}

/// Whether this server acts for all users or only its own.
pub fn serves_all() -> bool {
    creds::can_impersonate()
}
