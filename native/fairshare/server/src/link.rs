//! A mount whose server is at the end of a connection: over TCP on another machine, over its socket on the same one. The
//! kernel's questions go out as frames, and answers come back in any order.
//!
//! All that goes over a link is one user's and one job's: who the server took the connection for. When the server ends, the
//! link waits for its successor: files are opened again by their names, and must be the same files. What cannot be asked
//! twice is EIO, and so are files that somebody had locked.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Notifier};
use wire::{
    Attributes, FrameHeader, Hello, Op, Reply, Request, Ticket, Welcome, CHALLENGE_BYTES, FRAME_BYTES,
    MAX_BODY, NOTICE, REPLY_BYTES, ROOT, TICKET_BYTES, WANT_NOTICES, WELCOME_BYTES,
};

use crate::fuse::show;
use crate::handles::fill_at_random;
use crate::identity::{is_anybody, keyed, user_of};
use crate::inside::{Files, Process};
use crate::outcome::{Outcome, Then};

/// Files that the kernel may keep in mind; each is a descriptor of the server's.
const MOST_NODES: usize = 16384;
/// Between two attempts to reach a server that has gone.
const PAUSE: Duration = Duration::from_millis(50);

/// A server, and what shows it who asks.
pub struct Remote {
    /// The path of its socket, or tcp:HOST:PORT.
    pub address: String,
    /// As `tiercel share ticket` prints it.
    pub ticket: Option<String>,
    /// How long to wait for a server that has gone; and whether to end then.
    pub patience: Duration,
    pub leave: bool,
}

enum Line {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Line {
    fn again(&self) -> std::io::Result<Self> {
        Ok(match self {
            Line::Unix(stream) => Line::Unix(stream.try_clone()?),
            Line::Tcp(stream) => Line::Tcp(stream.try_clone()?),
        })
    }

    fn hang_up(&self) {
        let _ = match self {
            Line::Unix(stream) => stream.shutdown(Shutdown::Both),
            Line::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Line::Unix(stream) => stream.write_all(bytes),
            Line::Tcp(stream) => stream.write_all(bytes),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        match self {
            Line::Unix(stream) => stream.read_exact(bytes),
            Line::Tcp(stream) => stream.read_exact(bytes),
        }
    }

    /// A frame's tag and body.
    fn receive(&mut self) -> std::io::Result<(u64, Vec<u8>)> {
        let mut head = [0; FRAME_BYTES];
        self.fill(&mut head)?;
        let header = FrameHeader::parse(&head).map_err(std::io::Error::other)?;
        let mut body = vec![0; (header.length as usize).min(MAX_BODY)];
        self.fill(&mut body)?;
        Ok((header.tag, body))
    }
}

fn frame(tag: u64, parts: &[&[u8]]) -> Vec<u8> {
    let length = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(FRAME_BYTES + length);
    bytes.extend_from_slice(&FrameHeader::new(length, tag).to_bytes());
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

impl Remote {
    /// Connect and say who we are. What the server answers, or a sentence for the user.
    fn connect(&self) -> Result<(Line, Welcome), String> {
        let what =
            |error: std::io::Error| format!("{}: no fairshare server answers there: {error}", self.address);
        let mut line = match self.address.strip_prefix("tcp:") {
            Some(address) => {
                let stream = TcpStream::connect(address).map_err(what)?;
                let _ = stream.set_nodelay(true);
                crate::server::clients::keep_alive(stream.as_fd());
                Line::Tcp(stream)
            }
            None => {
                let stream = UnixStream::connect(&self.address).map_err(what)?;
                believe(stream.as_fd()).map_err(|reason| format!("{}: {reason}", self.address))?;
                Line::Unix(stream)
            }
        };
        let (_, body) = line.receive().map_err(what)?;
        let challenge: [u8; CHALLENGE_BYTES] = body
            .try_into()
            .map_err(|_| format!("{}: not a fairshare server", self.address))?;
        let mut hello = Hello {
            wants: WANT_NOTICES,
            voucher: 0,
            ticket: None,
            nonce: Default::default(),
        };
        let mut secret = None;
        if let Some(text) = &self.ticket {
            let (ticket, key) = read_ticket(text)?;
            fill_at_random(&mut hello.nonce).map_err(|_| "no random numbers")?;
            hello.ticket = Some((ticket, keyed(&key, &challenge)));
            secret = Some(keyed(&key, &wire::answer(&challenge, &hello.nonce)));
        }
        line.send(&frame(0, &[&hello.to_bytes()])).map_err(what)?;
        let (_, body) = line.receive().map_err(what)?;
        let (reply, data) = body
            .split_first_chunk::<REPLY_BYTES>()
            .ok_or_else(|| format!("{}: not a fairshare server", self.address))?;
        if Reply::parse(reply).result < 0 {
            return Err(format!("{}: {}", self.address, String::from_utf8_lossy(data)));
        }
        let Some((welcome, proof)) = data.split_first_chunk::<WELCOME_BYTES>() else {
            return Err(format!("{}: not a fairshare server", self.address));
        };
        // No attack learns anything from how long this takes: the secret is of this connection alone.
        if secret.is_some_and(|secret| proof != secret) {
            return Err(format!(
                "{}: the server does not know the secret of the ticket",
                self.address
            ));
        }
        Ok((line, Welcome::take(welcome)))
    }
}

/// Refuse a server that is neither root's nor our own user's: a path can be somebody else's.
fn believe(socket: BorrowedFd<'_>) -> Result<(), String> {
    let uid = user_of(socket).map_err(|_| "nobody is there")?;
    // SAFETY: no preconditions.
    let own = uid == unsafe { libc::geteuid() };
    let trusted = std::env::var("FAIRSHARE_SERVER_USER").unwrap_or_default();
    if uid == 0 || (own && !is_anybody(uid)) || trusted == uid.to_string() {
        return Ok(());
    }
    Err(format!(
        "the server runs as user {uid}, who is neither root nor you: FAIRSHARE_SERVER_USER={uid} if you trust it"
    ))
}

/// A ticket and its secret.
fn read_ticket(text: &str) -> Result<(Ticket, Vec<u8>), String> {
    let wrong = || "FAIRSHARE_TICKET is not a ticket, nor @ and a file that has one".to_owned();
    let text = match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|_| wrong())?,
        None => text.to_owned(),
    };
    let text = text.trim().as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes: Option<Vec<u8>> = text
        .chunks(2)
        .map(|two| Some(digit(two[0])? << 4 | digit(*two.get(1)?)?))
        .collect();
    let bytes = bytes.ok_or_else(wrong)?;
    let (ticket, secret) = bytes.split_first_chunk::<TICKET_BYTES>().ok_or_else(wrong)?;
    Ok((Ticket::parse(ticket).map_err(|_| wrong())?, secret.to_vec()))
}

/// An open file, and how it is opened again. Its number stays over a server's restart.
struct Kept {
    /// The server's number; None where the file was lost.
    handle: Option<u64>,
    /// When it was opened, among others: what it was opened from came before.
    order: u64,
    folder: u64,
    path: Vec<u8>,
    flags: u32,
    ino: u64,
}

struct Asked {
    request: Request,
    payload: Arc<Vec<u8>>,
    then: Then,
}

#[derive(Default)]
struct State {
    /// To whoever writes; None while there is no server.
    out: Option<Sender<Vec<u8>>>,
    /// Until when requests wait for a server.
    until: Option<Instant>,
    next: u64,
    asked: HashMap<u64, Asked>,
    kept: HashMap<u64, Kept>,
    /// Files on which somebody has locks, or had: their numbers.
    locked: HashSet<u64>,
}

struct Link {
    remote: Remote,
    state: Mutex<State>,
    /// Messages of what is to be dropped.
    notices: Sender<(u64, u64)>,
}

/// Whether a request can be sent again to a server that perhaps carried it out.
fn harmless(request: &Request) -> bool {
    match request.op {
        Op::Write => request.flags & wire::flags::APPEND == 0,
        Op::Open => request.flags as i32 & (libc::O_EXCL | libc::O_TRUNC) == 0,
        Op::Read
        | Op::Fsync
        | Op::GetAttributes
        | Op::SetAttributes
        | Op::Access
        | Op::Statfs
        | Op::ReadDirectory
        | Op::Readlink
        | Op::GetXattr
        | Op::ListXattr
        | Op::Truncate
        | Op::Allocate
        | Op::Seek => true,
        _ => false,
    }
}

fn failed(then: Then, errno: i32) {
    then(&Outcome::of(-i64::from(errno)), &[]);
}

impl State {
    /// The request as the server is to see it.
    fn translated(&self, request: &Request) -> Result<Request, i32> {
        let server_has = |number: u64| match number {
            ROOT => Ok(ROOT),
            _ => match self.kept.get(&number) {
                Some(kept) => kept.handle.ok_or(libc::EIO),
                None => Err(libc::EBADF),
            },
        };
        let mut translated = *request;
        translated.handle = server_has(request.handle)?;
        if matches!(request.op, Op::Rename | Op::Link) {
            translated.handle2 = server_has(request.handle2)?;
        }
        Ok(translated)
    }

    fn put(&mut self, tag: u64, asked: Asked) -> Result<(), (Then, i32)> {
        let translated = match self.translated(&asked.request) {
            Ok(translated) => translated,
            Err(errno) => return Err((asked.then, errno)),
        };
        match &self.out {
            Some(out) => {
                let _ = out.send(frame(tag, &[&translated.to_bytes(), &asked.payload]));
            }
            None if self.until.is_some_and(|until| Instant::now() >= until) => {
                return Err((asked.then, libc::EIO));
            }
            None => {} // it is sent when a server is there
        }
        self.asked.insert(tag, asked);
        Ok(())
    }

    /// What an answer says of open files. Returns what it came to for the kernel.
    fn learn(&mut self, asked: &Asked, outcome: &Outcome, data: &[u8]) {
        let (request, ok) = (&asked.request, outcome.result >= 0);
        match request.op {
            Op::Open if ok => {
                self.next += 1;
                let kept = Kept {
                    handle: Some(outcome.value),
                    order: self.next,
                    folder: request.handle,
                    path: asked.payload[..request.path_len as usize].to_vec(),
                    flags: request.flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u32,
                    ino: Attributes::parse(data).ino,
                };
                self.kept.insert(outcome.value, kept);
            }
            Op::Lock
                if ok && request.flags & wire::flags::SET != 0 && request.mode as i32 != libc::F_UNLCK =>
            {
                if let Some(kept) = self.kept.get(&request.handle) {
                    self.locked.insert(kept.ino);
                }
            }
            Op::Rename if ok => {
                let (from, to) = asked.payload.split_at(request.path_len as usize);
                let moved = self.kept.values_mut();
                for kept in moved.filter(|kept| kept.folder == request.handle && kept.path == from) {
                    (kept.folder, kept.path) = (request.handle2, to.to_vec());
                }
            }
            _ => {}
        }
    }
}

impl Files for Link {
    fn ask(&self, _: Process, request: Request, payload: Vec<u8>, then: Then) {
        let payload = Arc::new(payload);
        let asked = Asked {
            request,
            payload,
            then,
        };
        let mut state = self.state();
        state.next += 1;
        let tag = state.next;
        let refused = state.put(tag, asked);
        drop(state);
        if let Err((then, errno)) = refused {
            failed(then, errno);
        }
    }

    fn close(&self, handle: u64) {
        let mut state = self.state();
        let Some(kept) = state.kept.remove(&handle) else {
            return;
        };
        if let (Some(handle), Some(out)) = (kept.handle, &state.out) {
            let mut request = Request::new(Op::Close);
            request.handle = handle;
            let _ = out.send(frame(0, &[&request.to_bytes()]));
        }
    }

    fn socket(&self) -> Vec<u8> {
        match self.remote.address.starts_with("tcp:") {
            true => Vec::new(),
            false => {
                let path = std::path::absolute(&self.remote.address).unwrap_or_default();
                path.into_os_string().into_encoded_bytes()
            }
        }
    }
}

impl Link {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panics under this lock")
    }

    /// Send what is queued from now on, and hear answers until the server is gone.
    fn serve(self: &Arc<Self>, mut line: Line) {
        let (out, queue) = channel();
        let Ok(writes) = line.again() else { return };
        thread::spawn(move || write(writes, &queue));
        let again: Vec<(u64, Asked)> = {
            let mut state = self.state();
            (state.out, state.until) = (Some(out), None);
            state.asked.drain().collect()
        };
        for (tag, asked) in again {
            let refused = self.state().put(tag, asked);
            if let Err((then, errno)) = refused {
                failed(then, errno);
            }
        }
        while let Ok((tag, body)) = line.receive() {
            self.hear(tag, &body);
        }
        line.hang_up(); // whoever writes ends, too
    }

    fn hear(&self, tag: u64, body: &[u8]) {
        let word = |at: usize| {
            let bytes = body.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        if tag == NOTICE {
            let _ = self.notices.send((word(0), word(8)));
            return;
        }
        let Some((reply, data)) = body.split_first_chunk::<REPLY_BYTES>() else {
            return;
        };
        let reply = Reply::parse(reply);
        let outcome = Outcome {
            value: reply.value,
            ..Outcome::of(reply.result)
        };
        let asked = {
            let mut state = self.state();
            let Some(asked) = state.asked.remove(&tag) else {
                return; // of a file that was closed
            };
            state.learn(&asked, &outcome, data);
            asked
        };
        (asked.then)(&outcome, data);
    }

    /// The server has gone: wait for the next one, and open again what was open.
    fn find_again(self: &Arc<Self>) -> Line {
        let until = Instant::now() + self.remote.patience;
        let lost: Vec<Asked> = {
            let mut state = self.state();
            (state.out, state.until) = (None, Some(until));
            let tags: Vec<u64> = state
                .asked
                .iter()
                .filter(|(_, asked)| !harmless(&asked.request))
                .map(|(tag, _)| *tag)
                .collect();
            tags.iter().filter_map(|tag| state.asked.remove(tag)).collect()
        };
        lost.into_iter().for_each(|asked| failed(asked.then, libc::EIO));
        loop {
            if let Ok((mut line, _)) = self.remote.connect() {
                if self.open_again(&mut line).is_ok() {
                    return line;
                }
            }
            if Instant::now() >= until {
                let waiting: Vec<Asked> = self.state().asked.drain().map(|(_, asked)| asked).collect();
                waiting
                    .into_iter()
                    .for_each(|asked| failed(asked.then, libc::EIO));
                if self.remote.leave {
                    // SAFETY: a signal to ourselves, which unmounts.
                    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
                }
            }
            thread::sleep(PAUSE);
        }
    }

    fn open_again(&self, line: &mut Line) -> std::io::Result<()> {
        let mut numbers: Vec<(u64, u64)> = {
            let mut state = self.state();
            let locked = state.locked.clone();
            for kept in state.kept.values_mut() {
                // A lock that was lost is not to be believed in.
                let open = kept.flags & libc::O_PATH as u32 == 0;
                kept.handle = (!(open && locked.contains(&kept.ino))).then_some(0);
            }
            state.locked.clear();
            state
                .kept
                .iter()
                .map(|(number, kept)| (kept.order, *number))
                .collect()
        };
        numbers.sort_unstable();
        for (_, number) in numbers {
            let (request, path) = {
                let mut state = self.state();
                let folder = match state.kept.get(&number) {
                    Some(kept) if kept.handle.is_some() => match kept.folder {
                        ROOT => Some(ROOT),
                        folder => state.kept.get(&folder).and_then(|kept| kept.handle),
                    },
                    _ => continue, // closed meanwhile, or lost
                };
                let Some(kept) = state.kept.get_mut(&number) else {
                    continue;
                };
                let Some(folder) = folder else {
                    kept.handle = None;
                    continue;
                };
                let mut request = Request::new(Op::Open);
                (request.handle, request.flags) = (folder, kept.flags);
                request.path_len = kept.path.len() as u32;
                (request, kept.path.clone())
            };
            line.send(&frame(0, &[&request.to_bytes(), &path]))?;
            let (_, body) = line.receive()?;
            let (reply, data) = body
                .split_first_chunk::<REPLY_BYTES>()
                .ok_or_else(|| std::io::Error::other("no answer"))?;
            let reply = Reply::parse(reply);
            if let Some(kept) = self.state().kept.get_mut(&number) {
                let same = reply.result >= 0 && Attributes::parse(data).ino == kept.ino;
                kept.handle = same.then_some(reply.value);
            }
        }
        Ok(())
    }
}

fn write(mut line: Line, queue: &Receiver<Vec<u8>>) {
    for bytes in queue {
        if line.send(&bytes).is_err() {
            return line.hang_up();
        }
    }
}

/// Have the kernel drop what others change, and say so.
fn drop_what_others_change(link: &Arc<Link>, notifier: &Notifier, notices: &Receiver<(u64, u64)>) {
    for (ino, number) in notices {
        let _ = notifier.inval_inode(ino, 0, 0); // it may be gone
        let mut request = Request::new(Op::Dropped);
        request.offset = number as i64;
        if let Some(out) = &link.state().out {
            let _ = out.send(frame(0, &[&request.to_bytes()]));
        }
    }
}

/// Mount a remote server's files; unmounted when the result is dropped. The error is a sentence for the user.
pub fn show_remote(
    remote: Remote,
    path: &Path,
    apart: bool,
) -> Result<(BackgroundSession, Option<u32>), String> {
    let (line, welcome) = remote.connect()?;
    let (notices, received) = channel();
    let link = Arc::new(Link {
        remote,
        state: Mutex::default(),
        notices,
    });
    let files: Arc<dyn Files> = Arc::clone(&link) as Arc<dyn Files>;
    let (session, holder) = show(files, path, false, apart, MOST_NODES, welcome.turn)?;
    let notifier = session.notifier();
    let theirs = Arc::clone(&link);
    thread::spawn(move || drop_what_others_change(&theirs, &notifier, &received));
    thread::spawn(move || {
        let mut line = line;
        loop {
            link.serve(line);
            line = link.find_again();
        }
    });
    let session = session.spawn();
    let session = session.map_err(|error| format!("cannot mount on {}: {error}", path.display()))?;
    Ok((session, holder))
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Line::Unix(stream) => stream.as_fd(),
            Line::Tcp(stream) => stream.as_fd(),
        }
    }
}
