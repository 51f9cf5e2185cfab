//! One client's socket: frames in, frames out, never waiting. What does not fit in the socket now is
//! kept until it does; a peer that does not read is not asked for more than [`MOST_OUTSTANDING`] requests, nor more than
//! [`MOST_BYTES`] of them.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::mem;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use wire::{FrameHeader, FRAME_BYTES};

use crate::budget::Held;
use crate::creds;
use crate::rights;
use crate::session::Session;
use wire::CHALLENGE_BYTES;

/// Requests of one connection that may be under way. The next one is read after an answer.
const MOST_OUTSTANDING: u32 = 32;
/// Bytes of them, with those of answers that the client has not taken yet: beyond it nothing more is read. One
/// request may exceed it.
const MOST_BYTES: usize = 1 << 20;
/// Longest frame of somebody who has not said who it is.
const STRANGERS_FRAME: u32 = 4096;
/// What a connection can make the server keep in memory for its frames: those bytes, a frame that comes and one
/// that goes.
pub const MEMORY: u64 = 3 << 20;

pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

pub struct Connection {
    pub id: u64,
    pub socket: Socket,
    pub challenge: [u8; CHALLENGE_BYTES],
    pub since: Instant,
    pub session: OnceLock<Arc<Session>>,
    outstanding: AtomicU32,
    /// Of requests under way and answers that wait.
    bytes: AtomicUsize,
    /// Held while it is decided what epoll looks for, so that the last decision is of what is then.
    pub watching: Mutex<()>,
    pub closed: AtomicBool,
    /// Whether no descriptors come along with what it reads.
    without_rights: bool,
    input: Mutex<Input>,
    output: Mutex<VecDeque<Outgoing>>,
}

#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    filled: usize,
    header: Option<FrameHeader>,
}

struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    descriptors: Vec<Passed>,
}

/// A descriptor on its way to a client; it counts to the user until it is sent.
pub struct Passed {
    fd: OwnedFd,
    _held: Held,
}

impl Passed {
    pub fn new(fd: OwnedFd, held: Held) -> Self {
        Self { fd, _held: held }
    }
}

/// What a read came to.
pub enum Received {
    Frame {
        tag: u64,
        body: Vec<u8>,
    },
    /// Nothing more now.
    Nothing,
    /// The peer has gone, or does not speak our language.
    End,
}

impl Connection {
    pub fn new(id: u64, socket: Socket, challenge: [u8; CHALLENGE_BYTES]) -> Self {
        let without_rights = match &socket {
            Socket::Unix(stream) => rights::are_refused(stream.as_fd()),
            Socket::Tcp(_) => true,
        };
        Self {
            id,
            socket,
            without_rights,
            challenge,
            since: Instant::now(),
            session: OnceLock::new(),
            outstanding: AtomicU32::new(0),
            bytes: AtomicUsize::new(0),
            watching: Mutex::default(),
            closed: AtomicBool::new(false),
            input: Mutex::default(),
            output: Mutex::default(),
        }
    }

    pub fn fd(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }

    /// Whether the next request may be read.
    pub fn hungry(&self) -> bool {
        self.outstanding.load(Ordering::SeqCst) < MOST_OUTSTANDING
            && self.bytes.load(Ordering::SeqCst) < MOST_BYTES
    }

    /// A request of so many bytes, with its answer, is under way.
    pub fn begin(&self, bytes: usize) {
        self.outstanding.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// It is answered. Whether the next one may be read from now on, and before might not.
    pub fn end(&self, bytes: usize) -> bool {
        let sated = !self.hungry();
        self.outstanding.fetch_sub(1, Ordering::SeqCst);
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        sated
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = if self.without_rights {
            buffer.len()
        } else {
            rights::peek(self.socket.as_fd(), buffer)?
        };
        let buffer = &mut buffer[..count];
        match &self.socket {
            Socket::Unix(stream) => (&mut &*stream).read(buffer),
            Socket::Tcp(stream) => (&mut &*stream).read(buffer),
        }
    }

    /// Nothing is said or heard any more. Whether something may lie in the socket whose closing takes long: then
    /// [`Connection::drain`] is for whoever may take long.
    pub fn hang_up(&self) -> bool {
        // SAFETY: a plain call.
        unsafe { libc::shutdown(self.fd(), libc::SHUT_RDWR) };
        !self.without_rights && rights::may_lie_in(self.socket.as_fd())
    }

    /// Take what lies in the socket, and close what came along.
    pub fn drain(&self) {
        let mut buffer = [0; 4096];
        if let Socket::Unix(stream) = &self.socket {
            while (&mut &*stream).read(&mut buffer).is_ok_and(|count| count > 0) {}
        }
    }

    /// Take the next whole frame from the socket.
    pub fn receive(&self) -> Received {
        let mut input = self.input.lock().expect("no panics under this lock");
        loop {
            let wanted = match input.header {
                None => FRAME_BYTES,
                Some(header) => header.length as usize,
            };
            if input.filled < wanted {
                // Grown as bytes come, so that a length alone costs the server nothing.
                let limit = wanted.min(input.filled + (64 << 10));
                input.bytes.resize(limit, 0);
                let filled = input.filled;
                match self.read(&mut input.bytes[filled..]) {
                    Ok(0) => return Received::End,
                    Ok(count) => input.filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Received::Nothing,
                    Err(_) => return Received::End,
                }
                continue;
            }
            input.filled = 0;
            if let Some(header) = input.header.take() {
                let mut body = mem::take(&mut input.bytes);
                body.truncate(wanted);
                return Received::Frame {
                    tag: header.tag,
                    body,
                };
            }
            let bytes: &[u8; FRAME_BYTES] = input.bytes[..FRAME_BYTES].try_into().expect("resized");
            match FrameHeader::parse(bytes) {
                Ok(header) if header.length > STRANGERS_FRAME && self.session.get().is_none() => {
                    return Received::End
                }
                Ok(header) => input.header = Some(header),
                Err(_) => return Received::End,
            }
        }
    }

    /// Send a frame, or keep it for [`Connection::flush`]. Returns whether something is kept.
    pub fn send(&self, tag: u64, body: &[&[u8]], descriptors: Vec<Passed>) -> bool {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let mut bytes = Vec::with_capacity(FRAME_BYTES + length);
        bytes.extend_from_slice(&FrameHeader::new(length, tag).to_bytes());
        for part in body {
            bytes.extend_from_slice(part);
        }
        self.bytes.fetch_add(bytes.len(), Ordering::SeqCst);
        let mut output = self.output.lock().expect("no panics under this lock");
        output.push_back(Outgoing {
            bytes,
            sent: 0,
            descriptors,
        });
        self.push(&mut output)
    }

    /// Send what was kept, as far as the socket takes it. Returns whether something is still kept.
    pub fn flush(&self) -> bool {
        self.push(&mut self.output.lock().expect("no panics under this lock"))
    }

    fn push(&self, output: &mut VecDeque<Outgoing>) -> bool {
        while let Some(first) = output.front_mut() {
            let bytes = &first.bytes[first.sent..];
            let sent = match send_some(self.fd(), bytes, &first.descriptors) {
                // Clients that do not take theirs hold more descriptors under way than a user may.
                Err(error) if error.raw_os_error() == Some(libc::ETOOMANYREFS) => {
                    creds::beyond_limits(|| send_some(self.fd(), bytes, &first.descriptors))
                }
                other => other,
            };
            match sent {
                Ok(count) => {
                    first.sent += count;
                    first.descriptors.clear(); // they went with the first byte
                    if first.sent == first.bytes.len() {
                        self.bytes.fetch_sub(first.bytes.len(), Ordering::SeqCst);
                        output.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => {
                    let lost: usize = output.drain(..).map(|one| one.bytes.len()).sum();
                    self.bytes.fetch_sub(lost, Ordering::SeqCst); // the peer has gone; the reader will notice
                    return false;
                }
            }
        }
        false
    }
}

/// sendmsg with descriptors, without waiting and without SIGPIPE.
fn send_some(fd: RawFd, bytes: &[u8], descriptors: &[Passed]) -> io::Result<usize> {
    const MOST: usize = 4;
    let raw: Vec<RawFd> = descriptors
        .iter()
        .take(MOST)
        .map(|one| one.fd.as_raw_fd())
        .collect();
    // SAFETY: the message refers to buffers that live over the call; the control buffer is aligned
    // and large enough for MOST descriptors.
    let sent = unsafe {
        let mut control = [0_u64; 8];
        let mut part = libc::iovec {
            iov_base: bytes.as_ptr() as *mut _,
            iov_len: bytes.len(),
        };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if !raw.is_empty() {
            let length = mem::size_of_val(raw.as_slice()) as u32;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(length) as usize;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
            std::ptr::copy_nonoverlapping(raw.as_ptr().cast(), libc::CMSG_DATA(header), length as usize);
        }
        libc::sendmsg(fd, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(sent as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    /// As on a kernel that lets descriptors pass: they are closed by whoever drains, not by who reads.
    #[test]
    fn descriptors_that_nobody_asked_for_stay_where_they_are() {
        let (server, client) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let connection = Connection::new(1, Socket::Unix(server), [0; CHALLENGE_BYTES]);
        let (mut end, sent) = UnixStream::pair().unwrap();
        end.set_nonblocking(true).unwrap();
        let passed = Passed::new(sent.into(), Budget::new(9).take(0, 1).unwrap());
        let frame = [FrameHeader::new(4, 7).to_bytes().as_slice(), b"body"].concat();
        let fd = client.as_raw_fd();
        assert_eq!(send_some(fd, &frame, &[]).unwrap(), frame.len());
        assert!(matches!(connection.receive(), Received::Frame { tag: 7, .. }));
        assert_eq!(send_some(fd, &frame, &[passed]).unwrap(), frame.len());
        assert!(matches!(connection.receive(), Received::End));
        let mut byte = [0];
        let open = |end: &mut UnixStream, byte: &mut [u8]| end.read(byte).map_err(|error| error.kind());
        assert_eq!(open(&mut end, &mut byte), Err(io::ErrorKind::WouldBlock));
        assert!(connection.hang_up());
        assert_eq!(open(&mut end, &mut byte), Err(io::ErrorKind::WouldBlock));
        connection.drain();
        assert_eq!(open(&mut end, &mut byte), Ok(0), "it is closed");
        assert!(send_some(fd, &frame, &[]).is_err(), "nothing more comes");
    }
}
