//! What a server's signature vouches for: whose job this is, and how large.

use crate::record::{record, Malformed};

pub const TICKET_BYTES: usize = 128;

/// Longest job name (bytes of UTF-8).
pub const NAME_BYTES: usize = 48;

/// Who had a ticket signed. (0 is none: such tickets were signed when anybody could have them for any job.)
pub const ADMINISTRATOR: u32 = 1;
pub const USER: u32 = 2;

record! {
    /// A ticket as it is sent; of `name` the first `name_len` bytes count.
    TicketRecord, TICKET_BYTES;
    uid: u32,
    gid: u32,
    user: u32,
    group: u32,
    size: u32,
    priority: u32,
    expires: u64,
    nonce: u64,
    name_len: u32,
    by: u32,
    name: [u8; NAME_BYTES],
}

/// A ticket is public; its secret (an HMAC over it by the server's key) is what its holder must know.
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
    /// Unix seconds.
    pub expires: u64,
    pub nonce: u64,
    /// Who had it signed; the server says it.
    pub by: u32,
    pub job: String,
}

impl Ticket {
    pub fn parse(bytes: &[u8; TICKET_BYTES]) -> Result<Self, Malformed> {
        let record = TicketRecord::take(bytes);
        let name = record.name.get(..record.name_len as usize);
        let name = name
            .filter(|name| !name.is_empty())
            .ok_or(Malformed("ticket with no usable job name"))?;
        let job =
            std::str::from_utf8(name).map_err(|_| Malformed("ticket with a job name that is no text"))?;
        if !printable(job) {
            return Err(Malformed("ticket with a job name that cannot be printed"));
        }
        if record.size == 0 || record.priority == 0 {
            return Err(Malformed("ticket with a size or priority of zero"));
        }
        if record.by != ADMINISTRATOR && record.by != USER {
            return Err(Malformed("ticket of an older server: ask for a new one"));
        }
        Ok(Self {
            uid: record.uid,
            gid: record.gid,
            user: record.user,
            group: record.group,
            size: record.size,
            priority: record.priority,
            expires: record.expires,
            nonce: record.nonce,
            by: record.by,
            job: job.to_owned(),
        })
    }

    /// The bytes of the ticket; a job name beyond 48 bytes is cut at a character.
    pub fn to_bytes(&self) -> [u8; TICKET_BYTES] {
        let mut length = self.job.len().min(NAME_BYTES);
        while !self.job.is_char_boundary(length) {
            length -= 1;
        }
        let mut name = [0; NAME_BYTES];
        name[..length].copy_from_slice(&self.job.as_bytes()[..length]);
        TicketRecord {
            uid: self.uid,
            gid: self.gid,
            user: self.user,
            group: self.group,
            size: self.size,
            priority: self.priority,
            expires: self.expires,
            nonce: self.nonce,
            name_len: length as u32,
            by: self.by,
            name,
        }
        .to_bytes()
    }
}

/// Whether a name shows as what it is, in one line: neither control characters nor what turns a line's direction or is
/// taken for its end by some who read logs (U+2028).
fn printable(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    plain.escape_debug().eq(plain.chars())
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
    fn a_name_shows_as_what_it_is() {
        let parsed = |job: &str| {
            Ticket::parse(
                &Ticket {
                    job: job.into(),
                    ..ticket()
                }
                .to_bytes(),
            )
            .is_ok()
        };
        for good in ["ana's \"big\" \\ run", "jöb-7", "e\u{301}t\u{e9}", "計算"] {
            assert!(parsed(good), "{good}");
        }
        for bad in [
            "a\nb",
            "a\u{2028}{\"event\"",
            "a\u{202e}b",
            "a\u{200b}b",
            "\u{1b}[2J",
            "a\u{85}b",
        ] {
            assert!(!parsed(bad), "{bad:?}");
        }
    }
    #[test]
    fn a_ticket_without_size_or_name_or_by_nobody_is_refused() {
        for (at, number) in [(16, 0), (44, 0), (40, 0), (40, 49_u32)] {
            let mut bytes = ticket().to_bytes();
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            assert!(Ticket::parse(&bytes).is_err(), "{number} at {at}");
        }
    }
}
