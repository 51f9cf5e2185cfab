//! A storage that gives so many bytes a second and no more, as the server paces itself to it.

use crate::scheduler::Nanos;

/// How far the server may catch up for waking late, while requests were there that the storage would have
/// begun: a few time slices of a busy processor.
pub const CATCH_UP: Nanos = 20_000_000;

/// Says when the next request may begin, for all workers together.
///
/// The bytes of the requests that begin within any time t are at most rate (t + [`CATCH_UP`]) and the last
/// request: all but that one were paid for by time that the storage had. Time without a request is not
/// saved up: a storage that was idle is no faster for it.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Bytes per second; 0 for a storage without a limit.
    rate: u64,
    /// When the storage is done with all that has begun.
    busy_until: Nanos,
}

impl Pace {
    /// `rate` in bytes per second; 0 sets no limit.
    pub fn new(rate: u64) -> Self {
        Pace { rate, busy_until: 0 }
    }

    /// Goes on with another rate. What has begun takes as long as it would have.
    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// When a request may begin; None for now.
    pub fn wait(&self, now: Nanos) -> Option<Nanos> {
        (self.busy_until > now).then_some(self.busy_until)
    }

    /// A request that moves `bytes` and came at `arrived` begins.
    pub fn begin(&mut self, now: Nanos, arrived: Nanos, bytes: u64) {
        if self.rate > 0 {
            let takes = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.rate));
            let takes = Nanos::try_from(takes).unwrap_or(Nanos::MAX);
            let from = self.busy_until.max(arrived);
            let from = from.max(now.saturating_sub(CATCH_UP));
            self.busy_until = from.saturating_add(takes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const RATE: u64 = 400 << 20;

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pace = Pace::new(0);
        pace.begin(5, 0, 1 << 40);
        assert_eq!(pace.wait(5), None);
    }

    #[test]
    fn a_request_waits_for_the_one_before() {
        // 1000 bytes at 1 MB/s are a millisecond.
        let mut pace = Pace::new(1_000_000);
        pace.begin(10_000_000, 10_000_000, 1000);
        assert_eq!(pace.wait(10_000_000), Some(11_000_000));
        assert_eq!(pace.wait(11_000_000), None);
        pace.begin(11_000_000, 10_500_000, 1000);
        assert_eq!(pace.wait(11_000_000), Some(12_000_000));
        pace.begin(12_000_000, 11_000_000, 0); // a stat moves nothing
        assert_eq!(pace.wait(12_000_000), None);
    }

    #[test]
    fn who_wakes_late_catches_up_and_who_idles_does_not() {
        let mut pace = Pace::new(1_000_000);
        pace.begin(100_000_000, 100_000_000, 1000);
        // There since 100.5 ms, so the storage would have begun it at 101 ms; it is begun at 105.
        pace.begin(105_000_000, 100_500_000, 1000);
        assert_eq!(pace.wait(105_000_000), None);
        // Idle until one comes at 200 ms: it takes its millisecond.
        pace.begin(200_000_000, 200_000_000, 1000);
        assert_eq!(pace.wait(200_000_000), Some(201_000_000));
        // Woken half a second late: no more than 20 ms are caught up.
        pace.begin(700_000_000, 200_500_000, 1000);
        assert_eq!(pace.wait(681_000_000), None);
        assert_eq!(pace.wait(680_999_999), Some(681_000_000));
    }

    /// Whatever is asked for whenever: in no window more than rate x (window + catch-up) and one request.
    #[test]
    fn no_window_gets_more_than_the_rate() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut pace = Pace::new(RATE);
            let mut now = 0;
            let mut begun: Vec<(Nanos, u64)> = Vec::new();
            while begun.len() < 300 {
                let bytes = (random.unit() * f64::from(1 << 17)) as u64;
                match pace.wait(now) {
                    Some(when) => now = when + (random.unit() * 1e5) as Nanos, // woken late
                    None => {
                        pace.begin(now, (random.unit() * now as f64) as Nanos, bytes);
                        begun.push((now, bytes));
                        if random.unit() < 0.05 {
                            now += (random.unit() * 2e7) as Nanos; // idle
                        }
                    }
                }
            }
            for first in 0..begun.len() {
                let mut sum = 0;
                for &(at, bytes) in &begun[first..] {
                    let time = at - begun[first].0 + CATCH_UP;
                    assert!(sum as f64 <= RATE as f64 * time as f64 / 1e9 + 1.0);
                    sum += bytes;
                }
            }
        }
    }

    /// Asked all the time and woken late, but not too late, it gives the whole rate.
    #[test]
    fn a_busy_storage_gives_its_rate() {
        let mut random = Random::new(7);
        let mut pace = Pace::new(RATE);
        let (mut now, mut sum) = (0, 0_u64);
        while now < 1_000_000_000 {
            match pace.wait(now) {
                Some(when) => now = when + (random.unit() * 1.9e7) as Nanos,
                None => {
                    pace.begin(now, 0, 1 << 17);
                    sum += 1 << 17;
                }
            }
        }
        let off = sum as f64 / RATE as f64 - 1.0;
        assert!(off.abs() < 0.03, "{off}"); // the last waking alone is up to 2 %
    }
}
