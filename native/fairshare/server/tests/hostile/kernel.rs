//! What a kernel sends in the name of users: questions of all kinds, with numbers at which programs go wrong, through a
//! pair of sockets in the place of /dev/fuse. Each is answered once.

use std::collections::{HashSet, VecDeque};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::random::{rounds, Random};
use crate::{holds_secret, nothing_panicked, root, Attacked, ATTACKER, PATIENCE};

/// Bytes of the head of a question (length, number, tag, node, user, group, process) and of an answer's.
const QUESTION: usize = 40;
const ANSWER: usize = 16;
const INIT: u32 = 26;
/// These two have no answer.
const FORGET: u32 = 2;
const FORGET_MANY: u32 = 42;
const LOOKUP: u32 = 1;
const CREATE: u32 = 35;
const SET_ATTRIBUTES: u32 = 4;
const WRITE: u32 = 16;
const SET_XATTR: u32 = 21;
const IOCTL: u32 = 39;
/// Of its question, without what comes along.
const IOCTL_BYTES: usize = 32;
const OPENS: [u32; 2] = [14, 27];
const READS: [u32; 2] = [15, 28];
/// All that the mount is asked; what begins and ends a session is not drawn.
const KINDS: [u32; 37] = [
    LOOKUP,
    FORGET,
    3,
    SET_ATTRIBUTES,
    5,
    6,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    20,
    21,
    22,
    23,
    24,
    25,
    27,
    28,
    29,
    30,
    31,
    32,
    34,
    IOCTL,
    CREATE,
    FORGET_MANY,
    43,
    44,
    45,
    46,
];
/// Questions under way: as many as a kernel has with several processes.
const AT_A_TIME: usize = 8;
/// Files that it keeps in mind, by node and by open file.
const KEPT: usize = 64;
const NAMES: [&[u8]; 7] = [
    b"own",
    b"a",
    b"b",
    b"folder",
    b"secret",
    b"c",
    b"a-name-that-is-nowhere",
];

struct Kernel {
    fd: OwnedFd,
    waiting: HashSet<u64>,
    /// Of those without an answer.
    silent: HashSet<u64>,
    nodes: VecDeque<u64>,
    open: VecDeque<u64>,
    kinds: std::collections::HashMap<u64, u32>,
    next: u64,
}

impl Kernel {
    fn new(fd: OwnedFd) -> Self {
        let mut kernel = Self {
            fd,
            waiting: HashSet::new(),
            silent: HashSet::new(),
            nodes: VecDeque::from([1]),
            open: VecDeque::new(),
            kinds: Default::default(),
            next: 1,
        };
        let version: Vec<u8> = [7_u32, 31, 1 << 17, u32::MAX]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        kernel.ask(INIT, 0, &version, 0);
        let agreed = kernel.hear(0);
        // Who waits does so in the one queue: not in a line that the kernel keeps of what is read ahead (so long), nor for
        // whoever looks into the same folder (FUSE_PARALLEL_DIROPS).
        assert_eq!(agreed[ANSWER + 16..ANSWER + 18], [0xff; 2]);
        assert_eq!(agreed[ANSWER + 14] & 4, 4);
        kernel
    }

    fn ask(&mut self, kind: u32, node: u64, body: &[u8], seed: u64) {
        self.next += 1;
        let user = if root() { ATTACKER } else { 0 };
        let mut bytes = Vec::with_capacity(QUESTION + body.len());
        bytes.extend(((QUESTION + body.len()) as u32).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(self.next.to_le_bytes());
        bytes.extend(node.to_le_bytes());
        for word in [user, user, (seed % 100) as u32, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(body);
        if [FORGET, FORGET_MANY].contains(&kind) {
            self.silent.insert(self.next);
        } else {
            self.waiting.insert(self.next);
            self.kinds.insert(self.next, kind);
        }
        // SAFETY: bytes of our own.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        assert_eq!(sent, bytes.len() as isize, "the mount has ended, seed {seed}");
    }

    fn receive(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 2 << 20];
        // SAFETY: a buffer of our own.
        let count = unsafe { libc::recv(self.fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        bytes.truncate(usize::try_from(count).ok()?);
        Some(bytes)
    }

    /// One answer: its bytes.
    fn hear(&mut self, seed: u64) -> Vec<u8> {
        let bytes = self.receive().unwrap_or_default();
        assert!(
            bytes.len() >= ANSWER,
            "no answer to {:?}, seed {seed}",
            self.kinds
        );
        assert!(!holds_secret(&bytes), "the secret was read, seed {seed}");
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let tag = word(8);
        if self.silent.remove(&tag) {
            return bytes; // one that was too short is answered all the same
        }
        let Some(kind) = self.kinds.remove(&tag).filter(|_| self.waiting.remove(&tag)) else {
            panic!(
                "never asked, or answered before: {tag} of {}, {bytes:?}, seed {seed}",
                self.next
            );
        };
        // What was found and opened is asked about later.
        if word(0) >> 32 == 0 {
            if [LOOKUP, CREATE].contains(&kind) {
                self.nodes.push_back(word(ANSWER));
            }
            if OPENS.contains(&kind) {
                self.open.push_back(word(ANSWER));
            } else if kind == CREATE {
                self.open.push_back(word(ANSWER + 128));
            }
        }
        while self.nodes.len() > KEPT {
            self.nodes.remove(1);
        }
        while self.open.len() > KEPT {
            self.open.pop_front();
        }
        bytes
    }

    /// No more questions. What is still answered is one of those without an answer: a socket that is closed with
    /// such a word unread resets its other end, which /dev/fuse does not.
    fn end(mut self) {
        // SAFETY: a descriptor of our own.
        assert_eq!(unsafe { libc::shutdown(self.fd.as_raw_fd(), libc::SHUT_WR) }, 0);
        loop {
            let bytes = self.receive().expect("the mount does not end with its kernel");
            if bytes.is_empty() {
                return;
            }
            let tag = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            assert!(self.silent.remove(&tag), "answered before: {tag}, {bytes:?}");
        }
    }

    /// A question that may make sense.
    fn draw(&mut self, random: &mut Random, seed: u64) {
        let kind = KINDS[random.below(KINDS.len())];
        let node = match random.below(10) {
            0 => random.number(),
            _ => self.nodes[random.below(self.nodes.len())],
        };
        let mut body = vec![0; [8, 16, 32, 40, 88][random.below(5)]];
        for word in body.chunks_exact_mut(8) {
            word.copy_from_slice(&random.number().to_le_bytes());
        }
        if let (Some(file), true) = (self.open.get(random.below(KEPT)), body.len() > 8) {
            body[..8].copy_from_slice(&file.to_le_bytes());
        }
        // Sizes of answers are the kernel's own: it asks for no more than it has room for.
        if READS.contains(&kind) && body.len() >= 24 {
            body[16..20].copy_from_slice(&(random.next() as u32 & 0xffff).to_le_bytes());
        }
        for _ in 0..random.below(3) {
            body.extend(NAMES[random.below(NAMES.len())]);
            body.push(0);
        }
        if random.below(8) == 0 {
            let length = random.below(body.len() + 1);
            body.truncate(length);
        }
        if kind == SET_XATTR {
            body = attribute(random);
        }
        // The crate that reads it negates seconds before 1970: not the very first one, which it cannot.
        if kind == SET_ATTRIBUTES {
            body.chunks_exact_mut(8)
                .filter(|word| word[7] == 0x80)
                .for_each(|word| word[7] = 0);
        }
        if kind == WRITE {
            body = data(&body, random);
        }
        // The kernel counts the bytes that come along, and the crate that reads them insists.
        if kind == IOCTL {
            let more = body.len().saturating_sub(IOCTL_BYTES);
            body.resize(IOCTL_BYTES + more, 0);
            body[24..28].copy_from_slice(&(more as u32).to_le_bytes());
        }
        self.ask(kind, node, &body, seed);
    }
}

/// Open file and offset as drawn, length, flags, and data of that length.
fn data(drawn: &[u8], random: &mut Random) -> Vec<u8> {
    let length = random.below(5000);
    let mut body = drawn.to_vec();
    body.resize(40, 0);
    body[16..20].copy_from_slice(&(length as u32).to_le_bytes());
    body.resize(40 + length, b'd');
    body
}

/// Length of a value, flags, name and value: the kernel counts right, and the crate that reads it insists.
fn attribute(random: &mut Random) -> Vec<u8> {
    let value = vec![b'v'; random.below(300)];
    let name = [
        &b"user.a"[..],
        b"user.",
        b"security.capability",
        b"trusted.t",
        b"",
    ][random.below(5)];
    let mut body = (value.len() as u32).to_le_bytes().to_vec();
    body.extend((random.number() as u32).to_le_bytes());
    body.extend(name);
    body.push(0);
    body.extend(value);
    body
}

fn pair() -> (OwnedFd, OwnedFd) {
    let mut both = [0; 2];
    // SAFETY: room for two descriptors, which are ours.
    unsafe {
        let made = libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
            0,
            both.as_mut_ptr(),
        );
        assert_eq!(made, 0);
        let room = 8 << 20;
        let patience = libc::timeval {
            tv_sec: PATIENCE.as_secs() as i64,
            tv_usec: 0,
        };
        for fd in both {
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_SNDBUFFORCE,
                (&raw const room).cast(),
                4,
            );
        }
        let length = std::mem::size_of_val(&patience) as u32;
        libc::setsockopt(
            both[0],
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const patience).cast(),
            length,
        );
        (OwnedFd::from_raw_fd(both[0]), OwnedFd::from_raw_fd(both[1]))
    }
}

#[test]
fn a_kernel_that_asks_for_anything() {
    let attacked = Attacked::new("kernel");
    let (ours, theirs) = pair();
    let server = std::sync::Arc::clone(&attacked.server);
    let mount = std::thread::spawn(move || server::answer_kernel(&server, theirs));
    let mut kernel = Kernel::new(ours);
    for seed in 1..=rounds(100_000) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        kernel.draw(&mut random, seed);
        while kernel.waiting.len() >= AT_A_TIME {
            kernel.hear(seed);
        }
        if seed % 4096 == 0 {
            nothing_panicked(seed);
        }
    }
    while !kernel.waiting.is_empty() {
        kernel.hear(0);
    }
    nothing_panicked(0);
    attacked.is_unharmed();
    kernel.end();
    let until = Instant::now() + PATIENCE;
    while !mount.is_finished() {
        assert!(Instant::now() < until, "the mount does not end with its kernel");
        std::thread::sleep(Duration::from_millis(1));
    }
    mount.join().unwrap().unwrap();
}
