//! All that reads bytes from outside, on bytes that nobody meant: no panic, and what is accepted
//! is written back the same.

use wire::{entries, Attributes, FrameHeader, Hello, Request, Ticket, MAX_PATH, REQUEST_BYTES, TICKET_BYTES};

/// xorshift64*: the same bytes in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Mostly zeros and small numbers, so that some messages get past the first check.
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length)
            .map(|_| match self.next() % 4 {
                0 => self.next() as u8,
                1 => (self.next() % 52) as u8,
                _ => 0,
            })
            .collect()
    }
}

#[test]
fn random_messages() {
    let mut noise = Noise(42);
    let mut accepted = 0;
    for _ in 0..200_000 {
        let bytes = noise.bytes(REQUEST_BYTES);
        let bytes: &[u8; REQUEST_BYTES] = bytes.as_slice().try_into().unwrap();
        if let Ok(request) = Request::parse(bytes) {
            accepted += 1;
            assert!(request.paths_len() <= 2 * MAX_PATH);
            assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
        }
        let bytes = noise.bytes(TICKET_BYTES);
        if let Ok(ticket) = Ticket::parse(bytes.as_slice().try_into().unwrap()) {
            assert_eq!(Ticket::parse(&ticket.to_bytes()), Ok(ticket));
        }
        let length = (noise.next() % 256) as usize;
        let bytes = noise.bytes(length);
        let _ = Hello::parse(&bytes);
        let _ = Attributes::parse(&bytes);
        assert!(entries(&bytes).count() <= bytes.len() / 20);
        let bytes = noise.bytes(16);
        let _ = FrameHeader::parse(bytes.as_slice().try_into().unwrap());
    }
    assert!(
        accepted > 100,
        "the noise reaches the checks behind the first: {accepted}"
    );
}
