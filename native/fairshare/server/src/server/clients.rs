//! Clients on sockets: how they come, say who they are, ask, and go.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use wire::{segment, Hello, Reply, Request, Welcome, REQUEST_BYTES, WANT_SEGMENT};

use super::{about, Server};
use crate::connection::{Connection, Received, Socket};
use crate::errno::{Errno, Result};
use crate::identity::{identify, peer_of, Peer, CHALLENGE_BYTES};
use crate::queue::{Pending, Place};
use crate::session::Session;

/// Connections that have not said who they are yet.
const MOST_STRANGERS: usize = 256;

impl Server {
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

    pub(super) fn end(&self, connection: &Arc<Connection>) {
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
