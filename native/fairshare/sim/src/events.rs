//! What happens next: a queue of events in the order of time, and for equal times of their making.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use policy::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The request at this place of the table reaches its server.
    Arrive(u32),
    /// A worker is done with it.
    Done(u32),
    /// A scheduler that waits is to be asked again; schedulers are numbered over all servers.
    Wake(u32),
    /// A process (its number) may send requests again.
    Send(u32),
    /// A job (its number) begins, or ends.
    Start(u32),
    Stop(u32),
    /// The servers exchange their tables, or use what they computed from them.
    Exchange,
    Apply,
}

/// Each event is one number, which the heap compares at once: time (64 bits), the order of making (32),
/// kind (4) and what it is about (28).
#[derive(Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<u128>>,
    made: u64,
}

/// Processes, requests, schedulers and jobs have numbers below this.
pub const NUMBERS: u32 = 1 << 28;

impl Events {
    pub fn at(&mut self, time: Nanos, event: Event) {
        let (kind, number) = match event {
            Event::Arrive(number) => (0, number),
            Event::Done(number) => (1, number),
            Event::Wake(number) => (2, number),
            Event::Send(number) => (3, number),
            Event::Start(number) => (4, number),
            Event::Stop(number) => (5, number),
            Event::Exchange => (6, 0),
            Event::Apply => (7, 0),
        };
        debug_assert!(number < NUMBERS);
        // After 2^32 events the order of making begins anew; it matters among equal times only.
        let order = u128::from(self.made as u32);
        self.made += 1;
        let packed = u128::from(time) << 64 | order << 32 | u128::from(kind * NUMBERS + number);
        self.heap.push(Reverse(packed));
    }

    pub fn next(&mut self) -> Option<(Nanos, Event)> {
        let Reverse(packed) = self.heap.pop()?;
        let (kind, number) = (packed as u32 / NUMBERS, packed as u32 % NUMBERS);
        let event = match kind {
            0 => Event::Arrive(number),
            1 => Event::Done(number),
            2 => Event::Wake(number),
            3 => Event::Send(number),
            4 => Event::Start(number),
            5 => Event::Stop(number),
            6 => Event::Exchange,
            _ => Event::Apply,
        };
        Some(((packed >> 64) as Nanos, event))
    }

    /// Number of events made so far.
    pub fn made(&self) -> u64 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_they_were_made() {
        let mut events = Events::default();
        let last = NUMBERS - 1;
        for (time, event) in [
            (7, Event::Done(3)),
            (5, Event::Apply),
            (5, Event::Arrive(last)),
            (u64::MAX, Event::Stop(0)),
            (0, Event::Send(9)),
            (5, Event::Wake(1)),
        ] {
            events.at(time, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(
            order,
            [
                (0, Event::Send(9)),
                (5, Event::Apply),
                (5, Event::Arrive(last)),
                (5, Event::Wake(1)),
                (7, Event::Done(3)),
                (u64::MAX, Event::Stop(0)),
            ]
        );
    }
}
