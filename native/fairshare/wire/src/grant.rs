//! What a striped file's home server tells a client, and what that shows to the servers of the stripes.

use crate::reader::{u32_at, u64_at, Malformed};

/// Servers that one file may lie on.
pub const MOST_SERVERS: usize = 64;
pub const GRANT_BYTES: usize = 592;
/// A grant without its signature: HMAC-SHA256 over these bytes by the key that the servers share.
pub const SIGNED_BYTES: usize = GRANT_BYTES - 32;

/// Bits of `rights`.
pub mod rights {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    /// The file is empty, so an object that is not there yet may be made.
    pub const CREATE: u32 = 4;
    /// The file's last name is gone: its objects may go.
    pub const REMOVE: u32 = 8;
}

/// Where the data of a file lie; never changes for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The server that has the name, the attributes and the size.
    pub home: u64,
    pub file: u64,
    /// Bytes of a stripe.
    pub stripe: u32,
    pub servers: Vec<u64>,
}

/// Wire: home, file, expires (u64), stripe, number of servers, uid, rights, owner, group (u32), servers
/// (64 times u64), signature (32 bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub layout: Layout,
    /// Unix seconds.
    pub expires: u64,
    /// Who may present it.
    pub uid: u32,
    pub rights: u32,
    /// Whose file it is, for quotas.
    pub owner: u32,
    pub group: u32,
}

impl Grant {
    /// Read a grant; the caller checks the signature over the first `SIGNED_BYTES` bytes.
    pub fn parse(bytes: &[u8; GRANT_BYTES]) -> Result<Self, Malformed> {
        let count = u32_at(bytes, 28) as usize;
        let stripe = u32_at(bytes, 24);
        if count == 0 || count > MOST_SERVERS || stripe == 0 {
            return Err(Malformed("grant without stripes or servers"));
        }
        Ok(Self {
            layout: Layout {
                home: u64_at(bytes, 0),
                file: u64_at(bytes, 8),
                stripe,
                servers: (0..count).map(|n| u64_at(bytes, 48 + 8 * n)).collect(),
            },
            expires: u64_at(bytes, 16),
            uid: u32_at(bytes, 32),
            rights: u32_at(bytes, 36),
            owner: u32_at(bytes, 40),
            group: u32_at(bytes, 44),
        })
    }

    /// The bytes that are signed.
    pub fn to_bytes(&self) -> [u8; SIGNED_BYTES] {
        let mut bytes = [0; SIGNED_BYTES];
        let layout = &self.layout;
        for (n, word) in [layout.home, layout.file, self.expires].iter().enumerate() {
            bytes[8 * n..8 * n + 8].copy_from_slice(&word.to_le_bytes());
        }
        let count = layout.servers.len().min(MOST_SERVERS);
        let words = [
            layout.stripe,
            count as u32,
            self.uid,
            self.rights,
            self.owner,
            self.group,
        ];
        for (n, word) in words.iter().enumerate() {
            bytes[24 + 4 * n..28 + 4 * n].copy_from_slice(&word.to_le_bytes());
        }
        for (n, server) in layout.servers[..count].iter().enumerate() {
            bytes[48 + 8 * n..56 + 8 * n].copy_from_slice(&server.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_survives_the_wire_and_one_without_servers_is_refused() {
        let grant = Grant {
            layout: Layout {
                home: 1,
                file: 2,
                stripe: 65536,
                servers: vec![1, 9],
            },
            expires: 77,
            uid: 1000,
            rights: rights::READ | rights::CREATE,
            owner: 1000,
            group: 100,
        };
        let mut bytes = [0; GRANT_BYTES];
        bytes[..SIGNED_BYTES].copy_from_slice(&grant.to_bytes());
        assert_eq!(Grant::parse(&bytes), Ok(grant));
        bytes[28] = 65;
        assert!(Grant::parse(&bytes).is_err());
        bytes[28] = 0;
        assert!(Grant::parse(&bytes).is_err());
    }
}
