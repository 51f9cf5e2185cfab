//! Bytes of every job in every interval of the simulated time.

use policy::Nanos;

pub struct Series {
    interval: Nanos,
    end: Nanos,
    /// By job, by interval.
    bytes: Vec<Vec<u64>>,
}

impl Series {
    pub fn new(jobs: usize, interval: Nanos, end: Nanos) -> Self {
        let count = end.div_ceil(interval) as usize;
        Series {
            interval,
            end,
            bytes: vec![vec![0; count]; jobs],
        }
    }

    pub fn add(&mut self, job: usize, time: Nanos, bytes: u64) {
        let place = (time / self.interval) as usize;
        if let Some(sum) = self.bytes[job].get_mut(place) {
            *sum += bytes;
        }
    }

    pub fn intervals(&self) -> usize {
        self.bytes.first().map_or(0, Vec::len)
    }

    /// Begin and end of an interval, in nanoseconds; the last one may be shorter.
    pub fn bounds(&self, place: usize) -> (Nanos, Nanos) {
        let begin = place as Nanos * self.interval;
        (begin, (begin + self.interval).min(self.end))
    }

    /// Bytes per second of a job in an interval.
    pub fn throughput(&self, job: usize, place: usize) -> f64 {
        let (begin, end) = self.bounds(place);
        self.bytes[job][place] as f64 * 1e9 / (end - begin) as f64
    }

    pub fn bytes(&self, job: usize, place: usize) -> u64 {
        self.bytes[job][place]
    }
}
