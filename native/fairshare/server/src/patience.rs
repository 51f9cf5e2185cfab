//! Whether to look longer for the next request of a client that moves large pieces, as long as that finds something.
//!
//! Such a client copies the last pieces while its worker looks, and asks again at once if its program does. Who
//! sleeps meanwhile has to be woken, which takes as long as the copies, and often beside the client. The client
//! looks for answers by the same rule (`looked_if_it_pays` in the client's `segment.c`).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use policy::Nanos;
use wire::{Op, Request};

/// Bytes of a piece whose copy takes as long as waking somebody, or moving to another processor.
const LARGE: u64 = 32 << 10;

/// As long as two of three looks find something.
const MOST_LUCK: u32 = 64;
const COST: u32 = 2;
/// Once there is no luck left: one look of so many is a trial, and where it finds something a few more are.
const PAUSE: u32 = 128;
const TRIAL: u32 = 6;

pub struct Patience {
    luck: AtomicU32,
    unlucky: AtomicU32,
}

/// Whether it is a piece of a large transfer, which client and worker copy at the same time.
pub fn is_large(request: &Request) -> bool {
    matches!(request.op, Op::Read | Op::Write) && request.size >= LARGE
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            luck: AtomicU32::new(TRIAL),
            unlucky: AtomicU32::new(0),
        }
    }
}

impl Patience {
    /// Whether to look longer this time; then [`Patience::looked`] is told what came of it.
    pub fn pays(&self) -> bool {
        self.luck.load(Ordering::Relaxed) > 0
            || self.unlucky.fetch_add(1, Ordering::Relaxed) % PAUSE == PAUSE - 1
    }

    pub fn looked(&self, found: bool) {
        let luck = self.luck.load(Ordering::Relaxed);
        let now = match (found, luck) {
            (true, 0) => TRIAL,
            (true, _) => (luck + 1).min(MOST_LUCK),
            (false, _) => luck.saturating_sub(COST),
        };
        self.luck.store(now, Ordering::Relaxed);
    }
}

/// Whether requests on names and attributes are short on this storage. One that is not keeps the thread that reads the
/// kernel's questions from reading the next ones: after one, the next ones go to the workers.
#[derive(Default)]
pub struct Brevity(AtomicU64);

impl Brevity {
    /// A request that takes longer is not short.
    const SHORT: Nanos = 100_000;
    /// Requests that workers get after a long one.
    const WARY: u64 = 256;

    pub fn is_expected(&self) -> bool {
        let wary = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        wary.is_err()
    }

    pub fn took(&self, time: Nanos) {
        if time > Self::SHORT {
            self.0.store(Self::WARY, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks longer `times` times and finds what it does, as a worker would; returns how often it looked.
    fn looks(patience: &Patience, times: u32, found: impl Fn(u32) -> bool) -> u32 {
        (0..times)
            .filter(|number| {
                let looked = patience.pays();
                if looked {
                    patience.looked(found(*number));
                }
                looked
            })
            .count() as u32
    }

    #[test]
    fn looks_as_long_as_two_of_three_find_something() {
        let patience = Patience::default();
        assert_eq!(looks(&patience, 3000, |number| number % 3 != 0), 3000);
        assert!(looks(&patience, 3000, |number| number % 2 == 0) < 300);
    }

    #[test]
    fn gives_up_soon_and_tries_again_once_in_a_while() {
        let patience = Patience::default();
        looks(&patience, 100, |_| true);
        // 64 of luck are 32 looks in vain; after them one of 128.
        assert_eq!(looks(&patience, 32 + 1280, |_| false), 32 + 10);
        // The trial that finds something ends it.
        assert_eq!(looks(&patience, 128 + 100, |_| true), 1 + 100);
    }

    #[test]
    fn after_a_long_request_the_next_ones_go_to_the_workers() {
        let brevity = Brevity::default();
        brevity.took(Brevity::SHORT);
        assert!(brevity.is_expected());
        brevity.took(Brevity::SHORT + 1);
        assert!((0..Brevity::WARY).all(|_| !brevity.is_expected()));
        assert!(brevity.is_expected());
    }
}
