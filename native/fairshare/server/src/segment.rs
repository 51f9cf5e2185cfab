//! The server's side of a session's shared memory.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use wire::segment::{
    ARMED_AT, BYTES, CLIENT_AT, DATA_AT, DONE, POSTED_AT, REPLY_AT, REQUEST_AT, SERVER_AT, SLOTS, SLOTS_AT,
    SLOT_BYTES, SLOT_STRIDE, WAITED,
};
use wire::{Reply, REPLY_BYTES, REQUEST_BYTES};

use crate::errno::{check, Errno, Result};

/// Memory shared with one client, which may change any byte of it at any time: nothing is read from it
/// twice, and no Rust reference to its plain bytes is ever made.
pub struct Segment {
    base: *mut u8,
}

// SAFETY: the memory is reached through atomics and raw copies alone.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Make a segment. The descriptor is sealed against growing and shrinking: a client can neither
    /// take memory beyond it nor make an access by the server fail.
    pub fn create() -> Result<(Self, OwnedFd)> {
        // SAFETY: plain system calls; the name is a C string, and the descriptor ours from then on.
        unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let fd = check(libc::memfd_create(c"fairshare-session".as_ptr(), flags))?;
            let fd = OwnedFd::from_raw_fd(fd);
            check(libc::ftruncate(fd.as_raw_fd(), BYTES as i64))?;
            let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
            check(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals))?;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let base = libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                access,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            );
            if base == libc::MAP_FAILED {
                return Err(Errno::last());
            }
            let segment = Self { base: base.cast() };
            segment.armed().store(1, Ordering::SeqCst);
            Ok((segment, fd))
        }
    }

    fn atomic(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and only ever accessed atomically.
        unsafe { &*self.base.add(at).cast::<AtomicU32>() }
    }

    fn armed(&self) -> &AtomicU32 {
        self.atomic(ARMED_AT)
    }

    /// Have the client wake the server. Returns whether something was posted meanwhile: then don't sleep.
    pub fn arm(&self) -> bool {
        self.armed().store(1, Ordering::SeqCst);
        self.atomic(POSTED_AT).load(Ordering::SeqCst) != 0
    }

    pub fn disarm(&self) {
        self.armed().store(0, Ordering::SeqCst);
    }

    /// What a client does to post a slot. Returns whether it has to wake the server.
    #[cfg(test)]
    pub fn post(&self, slot: usize) -> bool {
        self.atomic(POSTED_AT).fetch_or(1 << slot, Ordering::SeqCst);
        self.armed().load(Ordering::SeqCst) != 0 && self.armed().swap(0, Ordering::SeqCst) != 0
    }

    pub fn has_posted(&self) -> bool {
        self.atomic(POSTED_AT).load(Ordering::Relaxed) != 0
    }

    /// The slots posted since the last call, one bit each.
    pub fn take_posted(&self) -> u32 {
        self.atomic(POSTED_AT).swap(0, Ordering::SeqCst) & ((1 << SLOTS) - 1)
    }

    pub fn request(&self, slot: usize) -> [u8; REQUEST_BYTES] {
        assert!(slot < SLOTS);
        let mut bytes = [0; REQUEST_BYTES];
        // SAFETY: inside the mapping, into memory of our own.
        unsafe {
            let from = self.base.add(SLOTS_AT + slot * SLOT_STRIDE + REQUEST_AT);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), REQUEST_BYTES);
        }
        bytes
    }

    /// The processor (from 0 upwards) that the client was on when it posted the slot, if it is ours.
    pub fn shared_processor(&self, slot: usize) -> Option<usize> {
        let theirs = self
            .atomic(SLOTS_AT + slot * SLOT_STRIDE + CLIENT_AT)
            .load(Ordering::Relaxed);
        (theirs != 0 && theirs == processor()).then(|| theirs as usize - 1)
    }

    /// Where the slot's data lies; SLOT_BYTES long.
    pub fn data(&self, slot: usize) -> *mut u8 {
        assert!(slot < SLOTS);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(DATA_AT + slot * SLOT_BYTES) }
    }

    /// Answer, and wake the client if it sleeps on this slot.
    pub fn complete(&self, slot: usize, reply: Reply) {
        assert!(slot < SLOTS);
        let bytes = reply.to_bytes();
        // SAFETY: inside the mapping.
        unsafe {
            let to = self.base.add(SLOTS_AT + slot * SLOT_STRIDE + REPLY_AT);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, REPLY_BYTES);
        }
        self.atomic(SLOTS_AT + slot * SLOT_STRIDE + SERVER_AT)
            .store(processor(), Ordering::Relaxed);
        let state = self.atomic(SLOTS_AT + slot * SLOT_STRIDE);
        if state.swap(DONE, Ordering::SeqCst) == WAITED {
            // SAFETY: a futex of both processes, at an address that stays mapped.
            unsafe {
                libc::syscall(libc::SYS_futex, state.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0);
            }
        }
    }
}

/// The processor that we are on, from 1 upwards; 0 where that is not known.
fn processor() -> u32 {
    // SAFETY: no preconditions.
    (unsafe { libc::sched_getcpu() } + 1) as u32
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped in create(), with this length; nobody has a pointer into it any more.
        unsafe {
            libc::munmap(self.base.cast(), BYTES);
        }
    }
}
