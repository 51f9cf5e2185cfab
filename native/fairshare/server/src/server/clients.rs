//! Clients on sockets: how they come, say who they are, ask, and go.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use serde_json::{json, Value};
use wire::{
    segment, Hello, Op, Reply, Request, Welcome, CHALLENGE_BYTES, NOTICE, REQUEST_BYTES, WANT_NOTICES,
    WANT_SEGMENT,
};

use super::{about, Server};
use crate::accounts;
use crate::budget::Held;
use crate::connection::{self, Connection, Received, Socket};
use crate::errno::{Errno, Result};
use crate::handles::fill_at_random;
use crate::identity::{identify, peer_of, user_of, Identity, Peer};
use crate::jobs::{Described, Proof};
use crate::locks;
use crate::queue::{Pending, Place};
use crate::safe::own;
use crate::server::answers::weight;
use crate::session::Session;
use crate::strangers::Origin;

/// Connections that are taken before other clients are looked after.
const AT_A_TIME: usize = 64;
/// Descriptors of the server that a session takes: the socket.
const FOR_A_SESSION: u64 = 1;

impl Server {
    /// Take the connections that wait on a listener.
    pub(crate) fn accept(&self, from_tcp: bool) {
        for _ in 0..AT_A_TIME {
            let (socket, origin) = if from_tcp {
                let Some(listener) = &self.tcp else { return };
                match listener.accept() {
                    Ok((stream, address)) => {
                        let _ = stream.set_nodelay(true);
                        let _ = stream.set_nonblocking(true);
                        keep_alive(stream.as_fd());
                        (Socket::Tcp(stream), Origin::Address(address.ip()))
                    }
                    Err(_) => return,
                }
            } else {
                match self.door.listener.accept() {
                    Ok((stream, _)) => {
                        let _ = stream.set_nonblocking(true);
                        let Ok(uid) = user_of(stream.as_fd()) else {
                            continue;
                        };
                        (Socket::Unix(stream), Origin::User(accounts::user_of(uid)))
                    }
                    Err(_) => return,
                }
            };
            // A connection that cannot be taken is closed by dropping it; the client sees the end.
            let _ = self.take(socket, origin);
        }
    }

    fn take(&self, socket: Socket, origin: Origin) -> Result<()> {
        let mut challenge = [0; CHALLENGE_BYTES];
        fill_at_random(&mut challenge)?;
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new(id, socket, challenge));
        if let Some(silent) = self.strangers.enter(origin, &connection) {
            self.end(&silent);
        }
        self.connections
            .lock()
            .expect("no panics under this lock")
            .insert(id, Arc::clone(&connection));
        connection.send(0, &[&challenge], vec![]);
        self.epoll
            .add(connection.fd(), interest(true, false), id << 3 | about::SOCKET)
    }

    pub(crate) fn all_connections(&self) -> Vec<Arc<Connection>> {
        let connections = self.connections.lock().expect("no panics under this lock");
        connections.values().cloned().collect()
    }

    pub(super) fn connection(&self, id: u64) -> Option<Arc<Connection>> {
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

    pub(super) fn watch(&self, connection: &Connection, kept: bool) {
        let _guard = connection.watching.lock().expect("no panics under this lock");
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
        if tag == NOTICE && body.is_empty() {
            self.wake(connection);
            return true;
        }
        let Some(Ok(request)) = body.first_chunk::<REQUEST_BYTES>().map(Request::parse) else {
            return false;
        };
        if request.op == Op::Dropped {
            if let Some(done) = self.caches.dropped(request.offset as u64, connection.id) {
                done(self);
            }
            return true;
        }
        let payload = body.len() - REQUEST_BYTES;
        connection.begin(weight(&request, payload));
        let place = Place::Frame {
            connection: Arc::clone(connection),
            tag,
            body,
            payload,
        };
        let pending = Pending {
            session: Arc::clone(session),
            request,
            place,
        };
        if pending.is_unlock() {
            self.serve(pending);
        } else {
            self.enqueue(session.job, vec![pending]);
        }
        true
    }

    fn hello(&self, connection: &Arc<Connection>, tag: u64, body: &[u8]) -> bool {
        let peer = match &connection.socket {
            Socket::Unix(stream) => peer_of(stream.as_fd()),
            Socket::Tcp(_) => Ok(Peer::Remote),
        };
        let Ok(peer) = peer else { return false };
        let from = whence(connection, &peer);
        let refuse = |errno: i32, reason: &str| {
            self.log
                .refused(with(&from, json!({"errno": errno, "reason": reason})));
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
        let makers = self.live.read().expect("no panics under this lock").jobs;
        let mut identity = match identify(
            &peer,
            &hello,
            &connection.challenge,
            &self.key,
            &self.slurm,
            makers,
        ) {
            Ok(identity) => identity,
            Err((Errno(errno), reason)) => return refuse(errno, &reason),
        };
        let uid = identity.creds.uid;
        let mut secret = 0;
        if hello.voucher != 0 {
            match self.vouchers.take(hello.voucher, uid) {
                Some(voucher) => (identity.job, secret) = (voucher.job, voucher.secret),
                None => return refuse(libc::EACCES, "the voucher is none of this server's for this user"),
            }
        }
        // Whoever may let it in again is let in to say so; programs ask for shared memory.
        let asks_only = matches!(peer, Peer::Local { .. }) && hello.wants & WANT_SEGMENT == 0;
        let left = self.sent_away.left(&identity.job.name, identity.job.job.user);
        if let Some(left) = left.filter(|_| !(asks_only && own(uid))) {
            let (job, seconds) = (&identity.job.name, left.as_secs() + 1);
            return refuse(
                libc::EACCES,
                &format!("job {job} was sent away by the administrator, for {seconds} s more"),
            );
        }
        let Some(held) = self.room_for_session(uid) else {
            return refuse(
                libc::EUSERS,
                "this user has as many connections to this server as leaves room for others",
            );
        };
        let local = matches!(connection.socket, Socket::Unix(_));
        let mut descriptors = Vec::new();
        let mut shared = None;
        if local && hello.wants & WANT_SEGMENT != 0 {
            match self.make_segment(uid) {
                Ok((made, passed)) => {
                    shared = Some(made);
                    descriptors.push(passed);
                }
                Err(Errno(errno)) => return refuse(errno, "no shared memory for this client"),
            }
        }
        let entry = self.join_job(&identity.job);
        self.log.joined(with(&from, described(&identity)));
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
            turn: self.turn(),
            secret,
        };
        let session = Session {
            local,
            shared,
            held,
            cache: (hello.wants & WANT_NOTICES != 0).then_some(connection.id),
            ..Session::new(connection.id, identity.creds, identity.job.job.id, entry)
        };
        self.strangers.leave(connection.id);
        let _ = connection.session.set(Arc::new(session));
        let mut data = welcome.to_bytes().to_vec();
        if let Some((ticket, _)) = &hello.ticket {
            data.extend_from_slice(&self.key.answer(ticket, &connection.challenge, &hello));
        }
        let reply = Reply {
            result: 0,
            value: 0,
            data_len: data.len() as u32,
        };
        connection.send(tag, &[&reply.to_bytes(), &data], descriptors);
        true
    }

    /// What one more session of a user takes, None where too little would be left for others.
    fn room_for_session(&self, uid: u32) -> Option<Vec<Held>> {
        const EACH: u64 = segment::BYTES as u64 + connection::MEMORY + locks::MEMORY;
        let memory = self.budgets.memory.take(uid, EACH)?;
        let sessions = (self.budgets.memory.of(uid) / EACH) as usize;
        let descriptors = self.budgets.descriptors.take(uid, FOR_A_SESSION)?;
        let mapping = self.budgets.mappings.take(uid, 1)?;
        (sessions <= self.config.most_sessions).then(|| vec![memory, descriptors, mapping])
    }

    pub(crate) fn end(&self, connection: &Arc<Connection>) {
        if connection.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.epoll.remove(connection.fd());
        self.hang_up(connection);
        self.strangers.leave(connection.id);
        self.connections
            .lock()
            .expect("no panics under this lock")
            .remove(&connection.id);
        let Some(session) = connection.session.get() else {
            return;
        };
        self.records.session_ended(session.id);
        self.handles.session_ended(session.id);
        // A job that was sent away keeps its processes: they would be let in as their user's.
        if self.sent_away.left(&session.entry.name, session.user()).is_none() {
            self.members.session_ended(session.id);
        }
        for done in self.caches.gone(session.id) {
            done(self);
        }
        self.leave_job(session);
    }

    /// Tell a mount that it is to drop something. False: it is gone.
    pub(crate) fn send_notice(&self, mount: u64, message: &[u8]) -> bool {
        let Some(connection) = self.connection(mount) else {
            return false;
        };
        if connection.send(NOTICE, &[message], vec![]) {
            self.watch(&connection, true);
        }
        !connection.closed.load(Ordering::SeqCst)
    }

    /// Mounts that do not say that they have dropped what they were told to keep others waiting.
    pub(crate) fn end_late_mounts(&self) {
        for connection in self
            .caches
            .late()
            .into_iter()
            .filter_map(|id| self.connection(id))
        {
            self.log.refused(json!({"session": connection.id,
                "reason": "this mount does not drop what others have changed"}));
            self.end(&connection);
        }
    }

    /// A connection that has ended holds what its client sent along until somebody closes that.
    fn hang_up(&self, connection: &Arc<Connection>) {
        let Socket::Unix(stream) = &connection.socket else {
            return;
        };
        if !connection.hang_up() {
            return;
        }
        let (uid, ended) = (user_of(stream.as_fd()), Arc::clone(connection));
        let drain = move |_: &Server| {
            ended.drain();
            None
        };
        match (self.apart.get(), uid) {
            (Some(apart), Ok(uid)) => apart(uid, Box::new(drain)),
            _ => drop(drain(self)),
        }
    }
}

/// Where a connection comes from, for the log.
fn whence(connection: &Connection, peer: &Peer) -> Value {
    match (peer, &connection.socket) {
        (Peer::Local { creds, pid }, _) => {
            json!({"over": "socket", "uid": creds.uid, "gid": creds.gid, "pid": pid})
        }
        (Peer::Remote, Socket::Tcp(stream)) => {
            json!({"over": "tcp", "address": stream.peer_addr().ok().map(|address| address.to_string())})
        }
        (Peer::Remote, Socket::Unix(_)) => json!({}),
    }
}

/// Who a session is, for the log.
pub(crate) fn described(identity: &Identity) -> Value {
    let Described { name, job, proof } = &identity.job;
    let by = match proof {
        Proof::Own => "own ticket",
        Proof::Kernel => "kernel",
        Proof::Ticket { .. } => "ticket",
    };
    let creds = &identity.creds;
    json!({"uid": creds.uid, "gid": creds.gid, "job": name, "size": job.size, "priority": job.priority,
           "user": job.user, "proof": by})
}

fn with(first: &Value, second: Value) -> Value {
    let mut both = first.clone();
    if let (Value::Object(both), Value::Object(second)) = (&mut both, second) {
        both.extend(second);
    }
    both
}

fn interest(read: bool, write: bool) -> i32 {
    (if read { libc::EPOLLIN | libc::EPOLLRDHUP } else { 0 }) | if write { libc::EPOLLOUT } else { 0 }
}

/// A peer that has vanished from the network is noticed within a minute or two.
pub(crate) fn keep_alive(socket: BorrowedFd<'_>) {
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
