//! The envelope on a socket: magic (u32), length of the body (u32), tag (u64).

use crate::reader::{u32_at, u64_at, Malformed};

pub const FRAME_MAGIC: u32 = 0x3152_5346; // "FSR1"
pub const FRAME_BYTES: usize = 16;

/// Longest body: a request, two paths and 1 MiB of data. A longer one ends the connection, so that
/// a client decides over no more of the server's memory than this.
pub const MAX_BODY: usize = (1 << 20) + (16 << 10);

/// The tag comes back with the answer: requests on one connection may overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub length: u32,
    pub tag: u64,
}

impl FrameHeader {
    pub fn parse(bytes: &[u8; FRAME_BYTES]) -> Result<Self, Malformed> {
        if u32_at(bytes, 0) != FRAME_MAGIC {
            return Err(Malformed("no frame begins here"));
        }
        let length = u32_at(bytes, 4);
        if length as usize > MAX_BODY {
            return Err(Malformed("frame longer than allowed"));
        }
        Ok(Self {
            length,
            tag: u64_at(bytes, 8),
        })
    }

    pub fn to_bytes(self) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[0..4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.tag.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let header = FrameHeader {
            length: 4096,
            tag: 77,
        };
        assert_eq!(FrameHeader::parse(&header.to_bytes()), Ok(header));
    }

    #[test]
    fn a_body_beyond_the_limit_is_refused() {
        let header = FrameHeader {
            length: MAX_BODY as u32 + 1,
            tag: 0,
        };
        assert!(FrameHeader::parse(&header.to_bytes()).is_err());
    }
}
