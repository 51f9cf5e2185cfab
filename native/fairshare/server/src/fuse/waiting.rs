//! Locks that processes wait for. The server keeps nobody waiting: it is asked again until the lock is free or the process
//! has a signal to look after. (The crate passes the kernel's interruptions on to nobody.)

use std::fs;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fuser::ReplyEmpty;

use crate::fuse::question::Question;
use crate::inside::{Files, Process};

/// Between two times that a lock is asked for: at first, and at last.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(32);

struct Waiter {
    by: Process,
    question: Question,
    reply: ReplyEmpty,
    pause: Duration,
    next: Instant,
}

/// Who waits.
pub struct Waiting {
    files: Arc<dyn Files>,
    sender: Sender<Waiter>,
}

impl Waiting {
    pub fn new(files: Arc<dyn Files>) -> Self {
        let (sender, receiver) = channel();
        let (again, theirs) = (sender.clone(), Arc::clone(&files));
        // It has a sender itself, and so ends with the process: which has one mount.
        thread::spawn(move || wait(&theirs, &receiver, &again));
        Self { files, sender }
    }

    /// Ask for a lock until it is there.
    pub fn ask(&self, by: Process, question: Question, reply: ReplyEmpty) {
        let waiter = Waiter {
            by,
            question,
            reply,
            pause: SHORTEST,
            next: Instant::now(),
        };
        ask(&self.files, waiter, &self.sender);
    }
}

fn ask(files: &Arc<dyn Files>, waiter: Waiter, again: &Sender<Waiter>) {
    let (by, request, again) = (waiter.by, waiter.question.request, again.clone());
    let then = move |outcome: &crate::outcome::Outcome, _: &[u8]| match outcome.result {
        0.. => waiter.reply.ok(),
        error if error == -i64::from(libc::EAGAIN) => {
            let pause = (waiter.pause * 2).min(LONGEST);
            let next = Instant::now() + waiter.pause;
            let _ = again.send(Waiter {
                pause,
                next,
                ..waiter
            });
        }
        error => waiter.reply.error(-error as i32),
    };
    files.ask(by, request, Vec::new(), Box::new(then));
}

fn wait(files: &Arc<dyn Files>, receiver: &Receiver<Waiter>, again: &Sender<Waiter>) {
    let mut waiting: Vec<Waiter> = Vec::new();
    loop {
        let now = Instant::now();
        let next = waiting.iter().map(|one| one.next).min();
        let came = match next {
            Some(next) => receiver.recv_timeout(next.saturating_duration_since(now)),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match came {
            Ok(one) => waiting.push(one),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        let (due, later) = waiting.into_iter().partition(|one| one.next <= now);
        waiting = later;
        let due: Vec<Waiter> = due;
        for one in due {
            if has_a_signal(one.by.2) {
                one.reply.error(libc::EINTR);
            } else {
                ask(files, one, again);
            }
        }
    }
}

/// Whether a thread has a signal that it neither blocks nor ignores, or is no more.
fn has_a_signal(thread: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else {
        return true;
    };
    is_signalled(&status)
}

fn is_signalled(status: &str) -> bool {
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| u64::from_str_radix(rest.trim(), 16).ok())
            .unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") & !set("SigIgn:") != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_counts_unless_it_is_blocked_or_ignored() {
        let status = |pending: &str, blocked: &str, ignored: &str| {
            format!("SigPnd:\t{pending}\nShdPnd:\t0000000000000000\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\n")
        };
        assert!(is_signalled(&status("0000000000002000", "0", "0"))); // SIGALRM is bit 13
        assert!(!is_signalled(&status("0000000000002000", "2000", "0")));
        assert!(!is_signalled(&status("0000000000002000", "0", "2000")));
        assert!(is_signalled(&status("0000000000000100", "2000", "2000"))); // SIGKILL
        assert!(!is_signalled(&status("0", "0", "0")));
    }
}
