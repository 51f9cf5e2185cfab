//! How a conversation begins.
//!
//! The server speaks first: a frame with a challenge of 16 bytes. The client's first frame is a
//! [`Hello`]; the answer is a frame with a [`Welcome`], or the end of the connection with a reason
//! (a frame whose result is -errno and whose data is a sentence).
//!
//! A ticket proves both ways: its holder shows that it knows the secret, and the server that it does, which only who
//! has the key that signed the ticket can. Else whoever took a server's address while it is down would get what its
//! clients write.

use crate::limits::VERSION;
use crate::reader::{u32_at, u64_at, Malformed};
use crate::ticket::{Ticket, TICKET_BYTES};

/// Of the server's first frame.
pub const CHALLENGE_BYTES: usize = 16;

/// Bit of `wants`: requests in shared memory (Unix sockets alone).
pub const WANT_SEGMENT: u32 = 1;

const FIXED: usize = 16;
/// Of the proof in a hello.
pub const PROOF_BYTES: usize = 32;

/// Of what the client asks the server to sign.
pub const NONCE_BYTES: usize = 16;

/// version (u32), wants (u32), session (u64), then perhaps a ticket, the proof that its holder
/// knows the ticket's secret: HMAC-SHA256(secret, challenge), and a nonce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub wants: u32,
    /// A session of this process's parent whose lost server it saw, or 0. For messages alone.
    pub session: u64,
    pub ticket: Option<(Ticket, [u8; PROOF_BYTES])>,
    /// What the server is to sign, where a ticket is shown.
    pub nonce: [u8; NONCE_BYTES],
}

impl Hello {
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < FIXED {
            return Err(Malformed("hello too short"));
        }
        if u32_at(bytes, 0) != VERSION {
            return Err(Malformed("client and server are of different versions"));
        }
        let rest = &bytes[FIXED..];
        let mut nonce = [0; NONCE_BYTES];
        let ticket = match rest.len() {
            0 => None,
            length if length == TICKET_BYTES + PROOF_BYTES + NONCE_BYTES => {
                let ticket = Ticket::parse(rest[..TICKET_BYTES].try_into().expect("checked"))?;
                let (proof, asked) = rest[TICKET_BYTES..].split_at(PROOF_BYTES);
                nonce.copy_from_slice(asked);
                Some((ticket, proof.try_into().expect("checked")))
            }
            _ => return Err(Malformed("hello neither with nor without a ticket")),
        };
        Ok(Self {
            wants: u32_at(bytes, 4),
            session: u64_at(bytes, 8),
            ticket,
            nonce,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED + TICKET_BYTES + PROOF_BYTES + NONCE_BYTES);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.wants.to_le_bytes());
        bytes.extend_from_slice(&self.session.to_le_bytes());
        if let Some((ticket, proof)) = &self.ticket {
            bytes.extend_from_slice(&ticket.to_bytes());
            bytes.extend_from_slice(proof);
            bytes.extend_from_slice(&self.nonce);
        }
        bytes
    }
}

/// What a server signs with a ticket's secret, for whoever showed it. No challenge is as long.
pub fn answer(challenge: &[u8; CHALLENGE_BYTES], nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    [ANSWER.as_bytes(), challenge, nonce].concat()
}

pub const ANSWER: &str = "fairshare server";

pub const WELCOME_BYTES: usize = 32;

/// session (u64), server (u64, stays over restarts), slots (u32), bytes of a slot (u32), uid (u32), bytes
/// of a stripe of new files (u32; 0: they are not striped).
/// Where a ticket was shown, HMAC-SHA256(secret, [`answer`]) follows. With a segment, its memfd and the doorbell's eventfd come along as descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    pub session: u64,
    pub server: u64,
    pub slots: u32,
    pub slot_bytes: u32,
    pub uid: u32,
    pub stripe: u32,
}

impl Welcome {
    pub fn to_bytes(self) -> [u8; WELCOME_BYTES] {
        let mut bytes = [0; WELCOME_BYTES];
        bytes[0..8].copy_from_slice(&self.session.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.server.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.slots.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.slot_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.uid.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.stripe.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_the_wire() {
        let hello = Hello {
            wants: WANT_SEGMENT,
            session: 3,
            ticket: None,
            nonce: [0; NONCE_BYTES],
        };
        assert_eq!(Hello::parse(&hello.to_bytes()), Ok(hello));
    }

    #[test]
    fn other_versions_and_odd_lengths_are_refused() {
        let mut bytes = Hello {
            wants: 0,
            session: 0,
            ticket: None,
            nonce: [0; NONCE_BYTES],
        }
        .to_bytes();
        bytes.push(1);
        assert!(Hello::parse(&bytes).is_err());
        bytes.truncate(16);
        bytes[0] = 99;
        assert!(Hello::parse(&bytes).is_err());
    }
}
