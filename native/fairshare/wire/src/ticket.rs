//! What a server's signature vouches for: whose job this is, and how large.

use crate::reader::{u32_at, u64_at, Malformed};

pub const TICKET_BYTES: usize = 128;

/// Longest job name (bytes of UTF-8).
const NAME: usize = 48;

/// Who had a ticket signed. (0 is none: such tickets were signed when anybody could have them for any job.)
pub const ADMINISTRATOR: u32 = 1;
pub const USER: u32 = 2;

/// A ticket is public; its secret (an HMAC over it by the server's key) is what its holder must know.
/// Wire: uid, gid, user, group, size, priority (u32 each), expires (u64, Unix seconds), nonce
/// (u64), length of the name (u32), by (u32), name (48), zeros up to 128.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Who may present it: the process's user over a Unix socket, the identity over TCP.
    pub uid: u32,
    pub gid: u32,
    /// Whom the job is accounted to by user-fair and group-fair policies.
    pub user: u32,
    pub group: u32,
    /// Number of nodes of the job, by size-fair policies.
    pub size: u32,
    pub priority: u32,
    pub expires: u64,
    pub nonce: u64,
    /// Who had it signed; the server says it.
    pub by: u32,
    pub job: String,
}

impl Ticket {
    pub fn parse(bytes: &[u8; TICKET_BYTES]) -> Result<Self, Malformed> {
        let length = u32_at(bytes, 40) as usize;
        if length == 0 || length > NAME {
            return Err(Malformed("ticket with no usable job name"));
        }
        let job = std::str::from_utf8(&bytes[48..48 + length])
            .map_err(|_| Malformed("ticket with a job name that is no text"))?;
        if job.chars().any(char::is_control) {
            return Err(Malformed("ticket with control characters in the job name"));
        }
        let (size, priority) = (u32_at(bytes, 16), u32_at(bytes, 20));
        if size == 0 || priority == 0 {
            return Err(Malformed("ticket with a size or priority of zero"));
        }
        let by = u32_at(bytes, 44);
        if by != ADMINISTRATOR && by != USER {
            return Err(Malformed("ticket of an older server: ask for a new one"));
        }
        Ok(Self {
            uid: u32_at(bytes, 0),
            gid: u32_at(bytes, 4),
            user: u32_at(bytes, 8),
            group: u32_at(bytes, 12),
            size,
            priority,
            expires: u64_at(bytes, 24),
            nonce: u64_at(bytes, 32),
            by,
            job: job.to_owned(),
        })
    }

    /// The bytes of the ticket; a job name beyond 48 bytes is cut at a character.
    pub fn to_bytes(&self) -> [u8; TICKET_BYTES] {
        let mut bytes = [0; TICKET_BYTES];
        let words = [
            self.uid,
            self.gid,
            self.user,
            self.group,
            self.size,
            self.priority,
        ];
        for (i, word) in words.iter().enumerate() {
            bytes[4 * i..4 * i + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&self.expires.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.nonce.to_le_bytes());
        let mut length = self.job.len().min(NAME);
        while !self.job.is_char_boundary(length) {
            length -= 1;
        }
        bytes[40..44].copy_from_slice(&(length as u32).to_le_bytes());
        bytes[44..48].copy_from_slice(&self.by.to_le_bytes());
        bytes[48..48 + length].copy_from_slice(&self.job.as_bytes()[..length]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            uid: 1000,
            gid: 100,
            user: 1000,
            group: 7,
            size: 4,
            priority: 1,
            expires: 5_000_000_000,
            nonce: 12,
            by: USER,
            job: "lammps-17".into(),
        }
    }

    #[test]
    fn a_ticket_survives_the_wire() {
        assert_eq!(Ticket::parse(&ticket().to_bytes()), Ok(ticket()));
    }

    #[test]
    fn a_ticket_without_size_or_name_is_refused() {
        let mut bytes = ticket().to_bytes();
        bytes[16..20].fill(0);
        assert!(Ticket::parse(&bytes).is_err());
        let mut bytes = ticket().to_bytes();
        bytes[44..48].fill(0);
        assert!(Ticket::parse(&bytes).is_err(), "by nobody");
        let mut bytes = ticket().to_bytes();
        bytes[40..44].copy_from_slice(&49_u32.to_le_bytes());
        assert!(Ticket::parse(&bytes).is_err());
    }
}
