//! A session's writes that workers have taken, and those of them that wait for earlier ones.
//!
//! A later piece of a write must not be written before the pieces in front of it, which other workers may just be
//! writing. It waits for these, and for nothing else: a piece that has nothing in front of it that is under way would
//! wait in vain, and keep its worker from others.

use std::sync::{Condvar, Mutex, MutexGuard};

use crate::errno::Result;

/// A file: device and inode.
type File = (u64, u64);

#[derive(Default)]
struct State {
    /// Writes that are being carried out, without those that wait.
    moving: usize,
    /// Those that wait: which file has to have which length.
    waiting: Vec<(File, i64)>,
}

#[derive(Default)]
pub struct Writes {
    state: Mutex<State>,
    ended: Condvar,
}

impl Writes {
    /// A worker has one more.
    pub fn taken(&self) {
        self.state().moving += 1;
    }

    /// One that was taken is carried out.
    pub fn ended(&self) {
        let mut state = self.state();
        state.moving -= 1;
        if !state.waiting.is_empty() {
            self.ended.notify_all();
        }
    }

    /// One that was taken waits until `file` has this length. False: no other write of this session could make it so.
    pub fn wait(&self, file: File, length: i64, now: impl Fn() -> Result<i64>) -> Result<bool> {
        if now()? >= length {
            return Ok(true);
        }
        let mut state = self.state();
        state.moving -= 1;
        self.ended.notify_all(); // who waits may be the last that could move
        state.waiting.push((file, length));
        let found = loop {
            let found = match now() {
                Ok(has) if has >= length => Ok(true),
                // Who waits for less goes on now, and what it writes may be what we wait for.
                Ok(has) if state.moving > 0 || state.is_enough_for_another(file, length, has) => {
                    state = self.ended.wait(state).expect("no panics under this lock");
                    continue;
                }
                Ok(_) => Ok(false),
                Err(error) => Err(error),
            };
            break found;
        };
        let at = state.waiting.iter().position(|one| *one == (file, length));
        state.waiting.swap_remove(at.expect("put there above"));
        state.moving += 1;
        found
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panics under this lock")
    }
}

impl State {
    fn is_enough_for_another(&self, file: File, length: i64, has: i64) -> bool {
        let mut others = self.waiting.iter().filter(|one| one.0 == file);
        others.any(|(_, wanted)| *wanted < length && *wanted <= has)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::thread;

    use super::*;

    const FILE: File = (1, 2);

    #[test]
    fn a_piece_with_nothing_in_front_of_it_does_not_wait() {
        let writes = Writes::default();
        writes.taken();
        assert_eq!(writes.wait(FILE, 5, || Ok(4)), Ok(false));
        assert_eq!(writes.wait(FILE, 5, || Ok(5)), Ok(true));
        // Nor do two that wait for what neither of them writes.
        writes.taken();
        thread::scope(|scope| {
            let both = [5, 9].map(|length| {
                let writes = &writes;
                scope.spawn(move || {
                    let there = writes.wait(FILE, length, || Ok(4));
                    writes.ended();
                    there
                })
            });
            assert_eq!(both.map(|one| one.join().unwrap()), [Ok(false), Ok(false)]);
        });
        assert_eq!(writes.state().moving, 0);
    }

    /// Pieces that are taken in order, by several workers, are written in order, and none is left out.
    #[test]
    fn pieces_come_in_order_whoever_is_slow() {
        let rounds = if std::env::var_os("FAIRSHARE_FUZZ").is_some() {
            20_000
        } else {
            500
        };
        for round in 0..rounds {
            let (writes, length) = (&Writes::default(), &AtomicI64::new(0));
            (0..6).for_each(|_| writes.taken()); // as one worker after the other takes them
            thread::scope(|scope| {
                let pieces = [3, 0, 5, 1, 4, 2].map(|piece: i64| {
                    scope.spawn(move || {
                        (0..(round * 7919 + piece * 104_729) % 300).for_each(|_| std::hint::spin_loop());
                        let there = writes.wait(FILE, piece, || Ok(length.load(Ordering::SeqCst)));
                        if there == Ok(true) {
                            length.store(piece + 1, Ordering::SeqCst);
                        }
                        writes.ended();
                        there
                    })
                });
                for piece in pieces {
                    assert_eq!(piece.join().unwrap(), Ok(true));
                }
            });
            assert_eq!(length.load(Ordering::SeqCst), 6);
        }
    }
}
