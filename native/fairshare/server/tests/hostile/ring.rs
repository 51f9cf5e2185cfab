//! The shared memory of a session, of which a client writes any byte at any time: while one thread posts requests,
//! another one writes over them, over their paths and data, over states and over the words by which both sides sleep
//! and wake.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use wire::segment::{
    ARMED_AT, BYTES, DATA_AT, DONE, POSTED, POSTED_AT, REPLY_AT, REQUEST_AT, SLOTS, SLOTS_AT, SLOT_BYTES,
    SLOT_STRIDE,
};
use wire::{
    FrameHeader, Hello, Op, Reply, Request, CHALLENGE_BYTES, FRAME_BYTES, NOTICE, REPLY_BYTES, WANT_SEGMENT,
    WELCOME_BYTES,
};

use crate::random::{rounds, Random};
use crate::{
    become_the_attacker, holds_secret, nothing_panicked, operation, Attacked, FORBIDDEN, PATHS, PATIENCE,
};

/// Requests between two looks at whether the client is still served and has got nothing.
const BETWEEN_LOOKS: u64 = 4096;
/// Open files that it keeps.
const KEPT: usize = 8;

struct Client {
    socket: UnixStream,
    memory: *mut u8,
    open: Vec<u64>,
}

// SAFETY: the memory is touched by raw copies and atomics alone.
unsafe impl Sync for Client {}

impl Client {
    fn connect(path: &Path) -> Self {
        let mut socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut challenge = [0; FRAME_BYTES + CHALLENGE_BYTES];
        socket.read_exact(&mut challenge).unwrap();
        let hello = Hello {
            wants: WANT_SEGMENT,
            voucher: 0,
            ticket: None,
            nonce: [0; 16],
        };
        let body = hello.to_bytes();
        let header = FrameHeader::new(body.len(), 0);
        socket
            .write_all(&[&header.to_bytes()[..], &body].concat())
            .unwrap();
        let (_, mut descriptors) = receive(socket.as_raw_fd(), 0).expect("a welcome");
        assert_eq!(descriptors.len(), 1, "memory");
        let mut rest = [0; REPLY_BYTES + WELCOME_BYTES];
        socket.read_exact(&mut rest).unwrap();
        let memory = descriptors.pop().unwrap();
        // SAFETY: a mapping of its whole length.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                protection,
                libc::MAP_SHARED,
                memory.as_raw_fd(),
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        Self {
            socket,
            memory: base.cast(),
            open: Vec::new(),
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned.
        unsafe { &*self.memory.add(at).cast::<AtomicU32>() }
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= BYTES);
        // SAFETY: inside the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(at), bytes.len()) }
    }

    fn copy(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: inside the mapping.
        unsafe { std::ptr::copy_nonoverlapping(self.memory.add(at), bytes.as_mut_ptr(), length) }
        bytes
    }

    fn post(&self, bits: u32, ring: bool) {
        self.word(POSTED_AT).fetch_or(bits, Ordering::SeqCst);
        if ring || self.word(ARMED_AT).swap(0, Ordering::SeqCst) != 0 {
            let ring = FrameHeader::new(0, NOTICE).to_bytes();
            // SAFETY: bytes of our own. A socket that is full wakes the server, too.
            unsafe {
                libc::send(
                    self.socket.as_raw_fd(),
                    ring.as_ptr().cast(),
                    ring.len(),
                    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                )
            };
        }
    }

    /// Note handles that answers name, of files that were opened; the newest are kept.
    fn take_open(&mut self) {
        for slot in 0..SLOTS {
            let at = SLOTS_AT + slot * SLOT_STRIDE + REPLY_AT;
            let reply = Reply::parse(self.copy(at, REPLY_BYTES)[..].try_into().unwrap());
            if reply.result == 0 && reply.value > 1 << 40 {
                self.open.push(reply.value);
            }
        }
        let more = self.open.len().saturating_sub(KEPT);
        self.open.drain(..more);
    }

    /// One slot's request and what belongs to it, nearly right.
    fn fill(&self, slot: usize, random: &mut Random) {
        let path = PATHS[random.below(PATHS.len())];
        let second = PATHS[random.below(PATHS.len())];
        let mut request = Request::new(operation(random));
        request.path_len = path.len() as u32;
        request.path2_len = second.len() as u32;
        request.flags = [
            0,
            1,
            libc::O_CREAT as u32 | 2,
            libc::O_RDWR as u32,
            random.next() as u32,
        ][random.below(5)];
        request.offset = [-1, 0, 4096, random.number() as i64][random.below(4)];
        request.size = [1, 4096, SLOT_BYTES as u64, random.number()][random.below(4)];
        request.mode = [0o644, 0o777, libc::S_IFIFO | 0o600, random.next() as u32][random.below(4)];
        (request.mask, request.uid, request.gid) = (random.next() as u32 & 31, u32::MAX, u32::MAX);
        if let Some(handle) = self.open.get(random.below(2 * KEPT)) {
            request.handle = *handle;
            if random.below(2) == 0 {
                request.path_len = 0;
            }
        }
        let mut bytes = request.to_bytes();
        let op = bytes[..4].to_vec();
        random.spoil(&mut bytes);
        if FORBIDDEN.contains(&bytes[0]) {
            bytes[..4].copy_from_slice(&op);
        }
        self.put(DATA_AT + slot * SLOT_BYTES, &[path, second].concat());
        self.put(SLOTS_AT + slot * SLOT_STRIDE + REQUEST_AT, &bytes);
        self.word(SLOTS_AT + slot * SLOT_STRIDE)
            .store(POSTED, Ordering::SeqCst);
    }

    /// Write over something that the server may be looking at.
    fn scribble(&self, random: &mut Random) {
        let slot = random.below(SLOTS);
        let at = SLOTS_AT + slot * SLOT_STRIDE;
        let number = random.number().to_le_bytes();
        match random.below(6) {
            0 => self.put(at + REQUEST_AT + 4 + random.below(84), &number), // not its operation
            1 => self.put(DATA_AT + slot * SLOT_BYTES, PATHS[random.below(PATHS.len())]),
            2 => self.put(
                DATA_AT + slot * SLOT_BYTES + random.below(SLOT_BYTES - 8),
                &number,
            ),
            3 => self.word(at).store(random.below(5) as u32, Ordering::SeqCst),
            4 => self.post(random.next() as u32, random.below(2) == 0),
            _ => self
                .word(ARMED_AT)
                .store(random.below(2) as u32, Ordering::SeqCst),
        }
    }

    /// Speak properly, twice by each slot: the first answer may be an earlier request's.
    fn is_served(&self, seed: u64) {
        for slot in (0..SLOTS).chain(0..SLOTS) {
            let at = SLOTS_AT + slot * SLOT_STRIDE;
            let until = Instant::now() + PATIENCE;
            self.put(at + REQUEST_AT, &Request::new(Op::Ping).to_bytes());
            self.word(at).store(POSTED, Ordering::SeqCst);
            while self.word(at).load(Ordering::SeqCst) != DONE {
                // What is posted while the slot is at work is ignored.
                self.post(1 << slot, true);
                assert!(
                    Instant::now() < until,
                    "slot {slot} is not served any more, seed {seed}"
                );
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        let reply = Reply::parse(
            self.copy(SLOTS_AT + REPLY_AT, REPLY_BYTES)[..]
                .try_into()
                .unwrap(),
        );
        assert_eq!(reply.result, 0, "the answer to a ping, seed {seed}");
        assert!(
            !holds_secret(&self.copy(0, BYTES)),
            "the secret was read, seed {seed}"
        );
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: mapped when it was made.
        unsafe { libc::munmap(self.memory.cast(), BYTES) };
    }
}

/// The head of a frame and the descriptors that came with it; None where nothing has come.
fn receive(socket: RawFd, flags: i32) -> Option<([u8; FRAME_BYTES], Vec<OwnedFd>)> {
    let mut head = [0; FRAME_BYTES];
    let mut room = [0_u64; 8];
    // SAFETY: buffers of our own, with their lengths.
    unsafe {
        let mut part = libc::iovec {
            iov_base: head.as_mut_ptr().cast(),
            iov_len: FRAME_BYTES,
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
        (message.msg_control, message.msg_controllen) = (room.as_mut_ptr().cast(), 64);
        let count = libc::recvmsg(
            socket,
            &mut message,
            flags | libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL,
        );
        assert_ne!(count, 0, "the server has hung up");
        if count < 0 {
            return None;
        }
        let mut descriptors = Vec::new();
        let control = libc::CMSG_FIRSTHDR(&message);
        if !control.is_null() {
            let held = (*control).cmsg_len - libc::CMSG_LEN(0) as usize;
            let first = libc::CMSG_DATA(control).cast::<RawFd>();
            for n in 0..held / 4 {
                descriptors.push(OwnedFd::from_raw_fd(first.add(n).read_unaligned()));
            }
        }
        Some((head, descriptors))
    }
}

#[test]
fn a_ring_that_is_written_over_while_it_is_read() {
    let attacked = Attacked::new("ring");
    let wanted = rounds(100_000);
    let attack = || {
        become_the_attacker();
        let mut client = Client::connect(&attacked.socket());
        let (mut posted, mut seed) = (0, 0);
        while posted < wanted {
            seed += 1;
            let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
            let over = AtomicBool::new(false);
            for _ in 0..BETWEEN_LOOKS / (SLOTS as u64 * 16) {
                over.store(false, Ordering::SeqCst);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut random = Random(seed * 77 + 1);
                        while !over.load(Ordering::Relaxed) {
                            client.scribble(&mut random);
                        }
                    });
                    for _ in 0..16 {
                        for slot in 0..SLOTS {
                            client.fill(slot, &mut random);
                        }
                        client.post(random.next() as u32 | 1, random.below(4) == 0);
                        for _ in 0..random.below(2000) {
                            std::hint::spin_loop();
                        }
                        posted += SLOTS as u64;
                    }
                    over.store(true, Ordering::SeqCst);
                });
            }
            client.take_open();
            client.is_served(seed);
            nothing_panicked(seed);
        }
    };
    std::thread::scope(|scope| {
        let attacker = scope.spawn(attack);
        assert!(attacker.join().is_ok(), "see above");
    });
    attacked.is_unharmed();
}
