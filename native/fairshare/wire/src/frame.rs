//! The envelope on a socket.

use crate::record::{record, Malformed};

pub const FRAME_MAGIC: u32 = 0x3152_5346; // "FSR1"
pub const FRAME_BYTES: usize = 16;

/// Longest body: a request, two paths and 1 MiB of data. A longer one ends the connection, so that
/// a client decides over no more of the server's memory than this.
pub const MAX_BODY: usize = (1 << 20) + (16 << 10);

record! {
    /// The tag comes back with the answer: requests on one connection may overtake each other.
    FrameHeader, FRAME_BYTES;
    magic: u32,
    /// Of the body.
    length: u32,
    tag: u64,
}

impl FrameHeader {
    pub fn new(length: usize, tag: u64) -> Self {
        Self {
            magic: FRAME_MAGIC,
            length: length as u32,
            tag,
        }
    }

    pub fn parse(bytes: &[u8; FRAME_BYTES]) -> Result<Self, Malformed> {
        let header = Self::take(bytes);
        if header.magic != FRAME_MAGIC {
            return Err(Malformed("no frame begins here"));
        }
        if header.length as usize > MAX_BODY {
            return Err(Malformed("frame longer than allowed"));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire_and_a_body_beyond_the_limit_is_refused() {
        let header = FrameHeader::new(4096, 77);
        assert_eq!(FrameHeader::parse(&header.to_bytes()), Ok(header));
        assert!(FrameHeader::parse(&FrameHeader::new(MAX_BODY + 1, 0).to_bytes()).is_err());
    }
}
