//! On which processor a worker serves: not on that of a client with which it copies at the same time.
//!
//! A kernel likes to run who is woken beside who wakes; in a virtual machine, whose idle processors look taken, nearly
//! always. Both copies of a large transfer then take turns where they could overlap.

use std::cell::Cell;
use std::mem;
use std::time::{Duration, Instant};

/// Between two moves of a worker, of some ten microseconds each.
const PAUSE: Duration = Duration::from_millis(5);
/// The same after moves in vain, at most.
const LONGEST: Duration = Duration::from_secs(1);
/// A move that takes longer has led to a processor that others use.
const CROWDED: Duration = Duration::from_micros(200);

thread_local! {
    /// When this worker may move again, and how long it waits after a move in vain.
    static NEXT: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Go on elsewhere if this thread runs on `processor` (from 0 upwards), and may. Where it runs from then on is the
/// kernel's affair again.
pub fn leave(processor: usize) {
    let began = Instant::now();
    let pause = match NEXT.get() {
        Some((when, _)) if began < when => return,
        Some((_, pause)) => pause,
        None => PAUSE,
    };
    if move_from(processor).is_none() {
        return NEXT.set(Some((began + LONGEST, pause)));
    }
    let pause = match began.elapsed() {
        took if took > CROWDED => (pause * 4).min(LONGEST),
        _ => PAUSE,
    };
    NEXT.set(Some((began + pause, pause)));
}

fn move_from(processor: usize) -> Option<()> {
    const SIZE: usize = mem::size_of::<libc::cpu_set_t>();
    // SAFETY: plain data, of the size that is said; the number is one that the set has.
    unsafe {
        let mut allowed: libc::cpu_set_t = mem::zeroed();
        if processor >= 8 * SIZE || libc::sched_getaffinity(0, SIZE, &mut allowed) != 0 {
            return None;
        }
        let mut others = allowed;
        libc::CPU_CLR(processor, &mut others);
        if libc::CPU_COUNT(&others) == 0 || libc::sched_setaffinity(0, SIZE, &others) != 0 {
            return None;
        }
        libc::sched_setaffinity(0, SIZE, &allowed);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        // SAFETY: as above.
        unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set);
            (0..1024).filter(|one| libc::CPU_ISSET(*one, &set)).collect()
        }
    }

    #[test]
    fn a_worker_moves_once_in_a_while_and_may_run_where_it_might() {
        let before = allowed();
        let on = || (unsafe { libc::sched_getcpu() }) as usize; // SAFETY: no preconditions
        for _ in 0..100 {
            let here = on();
            leave(here);
            assert_eq!(allowed(), before);
        }
        assert!(NEXT.get().is_some());
        move_from(usize::MAX);
        move_from(on());
        assert_eq!(allowed(), before);
    }
}
