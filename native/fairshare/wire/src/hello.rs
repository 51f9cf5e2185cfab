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
use crate::record::{record, Malformed};
use crate::ticket::{Ticket, TICKET_BYTES};

/// Of the server's first frame.
pub const CHALLENGE_BYTES: usize = 16;

/// Bits of `wants`: requests in shared memory (Unix sockets alone); to be told when others change files that this client
/// keeps something of (a mount).
pub const WANT_SEGMENT: u32 = 1;
pub const WANT_NOTICES: u32 = 2;

/// The tag of a frame that answers nothing. To a mount: it is to drop what it has of a file. The file's number and the
/// message's, with which [`crate::Op::Dropped`] says that it is done. From a client, without a body: something was posted in
/// shared memory while the server slept.
pub const NOTICE: u64 = u64::MAX;

pub const HELLO_BYTES: usize = 16;
/// Of the proof in a hello.
pub const PROOF_BYTES: usize = 32;

/// Of what the client asks the server to sign.
pub const NONCE_BYTES: usize = 16;

record! {
    /// What every hello begins with. Then perhaps come a ticket, the proof that its holder knows the ticket's
    /// secret: HMAC-SHA256(secret, challenge), and a nonce.
    HelloHead, HELLO_BYTES;
    version: u32,
    wants: u32,
    /// Of [`crate::Op::Vouch`], or 0.
    voucher: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub wants: u32,
    pub voucher: u64,
    pub ticket: Option<(Ticket, [u8; PROOF_BYTES])>,
    /// What the server is to sign, where a ticket is shown.
    pub nonce: [u8; NONCE_BYTES],
}

impl Hello {
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (head, rest) = bytes.split_first_chunk().ok_or(Malformed("hello too short"))?;
        let head = HelloHead::take(head);
        if head.version != VERSION {
            return Err(Malformed("client and server are of different versions"));
        }
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
            wants: head.wants,
            voucher: head.voucher,
            ticket,
            nonce,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let head = HelloHead {
            version: VERSION,
            wants: self.wants,
            voucher: self.voucher,
        };
        let mut bytes = head.to_bytes().to_vec();
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

pub const WELCOME_BYTES: usize = 40;

record! {
    /// Where a ticket was shown, HMAC-SHA256(secret, [`answer`]) follows. With a segment, its memfd comes along.
    Welcome, WELCOME_BYTES;
    session: u64,
    /// Stays over restarts.
    server: u64,
    slots: u32,
    slot_bytes: u32,
    uid: u32,
    /// Bytes that a mount's kernel may ask for at once.
    turn: u32,
    /// Of the voucher that was shown: that the server is the one which gave it.
    secret: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_the_wire_and_other_versions_and_odd_lengths_are_refused() {
        let hello = Hello {
            wants: WANT_SEGMENT,
            voucher: 3,
            ticket: None,
            nonce: [0; NONCE_BYTES],
        };
        let mut bytes = hello.to_bytes();
        assert_eq!(Hello::parse(&bytes), Ok(hello));
        bytes.push(1);
        assert!(Hello::parse(&bytes).is_err());
        bytes.truncate(HELLO_BYTES);
        bytes[0] = 99;
        assert!(Hello::parse(&bytes).is_err());
    }
}
