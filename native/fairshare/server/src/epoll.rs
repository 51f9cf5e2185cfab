//! epoll(7), as much of it as the server needs.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::errno::{check, Result};

pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Result<Self> {
        // SAFETY: a plain call; the descriptor is ours.
        Ok(Self(unsafe {
            OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?)
        }))
    }

    pub fn add(&self, fd: RawFd, events: i32, about: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, about)
    }

    pub fn change(&self, fd: RawFd, events: i32, about: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, about)
    }

    pub fn remove(&self, fd: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn control(&self, what: i32, fd: RawFd, events: i32, about: u64) -> Result<()> {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: about,
        };
        // SAFETY: a valid event.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd, &mut event) })?;
        Ok(())
    }

    /// What events are about (the bits given to `add`), at most 64 of them.
    pub fn wait(&self, timeout: Duration) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        // SAFETY: buffers and lengths agree; no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len(),
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0,
            )
        };
        events[..count.max(0) as usize]
            .iter()
            .map(|event| event.u64)
            .collect()
    }
}

/// What is rung to make somebody look who waits by epoll.
pub fn eventfd() -> Result<OwnedFd> {
    // SAFETY: a plain call; the descriptor is ours.
    Ok(unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) })
}
