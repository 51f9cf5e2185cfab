//! Numbers and slightly wrong messages, the same ones on every machine. The drivers of hostile clients share them.

use wire::MAX_BODY;

/// xorshift64*: the same messages on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    #[allow(dead_code, reason = "not by all who share this")]
    pub fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.next() as u8);
    }

    /// Numbers at which programs go wrong, and others.
    pub fn number(&mut self) -> u64 {
        let edges = [
            0,
            1,
            2,
            47,
            48,
            49,
            63,
            64,
            65,
            127,
            128,
            4095,
            4096,
            4097,
            0xffff,
            MAX_BODY as u64,
        ];
        match self.below(4) {
            0 => edges[self.below(edges.len())],
            1 => u64::MAX - self.below(3) as u64,
            2 => 1 << self.below(64),
            _ => self.next(),
        }
    }

    /// Changes a message a little: bytes, a number at any place, or a part moved over another.
    pub fn spoil(&mut self, bytes: &mut [u8]) {
        for _ in 0..self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(3) {
                0 => bytes[at] = self.next() as u8,
                1 => {
                    let number = self.number().to_le_bytes();
                    let length = [1, 2, 4, 8][self.below(4)].min(bytes.len() - at);
                    bytes[at..at + length].copy_from_slice(&number[..length]);
                }
                _ => {
                    let length = self.below(bytes.len() - at);
                    let from = self.below(bytes.len() - length);
                    bytes.copy_within(from..from + length, at);
                }
            }
        }
    }
}

/// How many messages a driver is to make: what `FAIRSHARE_FUZZ` says, else `usual`.
pub fn rounds(usual: u64) -> u64 {
    std::env::var("FAIRSHARE_FUZZ").map_or(usual, |text| text.parse().expect("a number"))
}
