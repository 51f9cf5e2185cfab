//! What a striped file's home server tells a client, and what that shows to the servers of the stripes.

use crate::record::{record, Malformed};

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

record! {
    /// A grant as it is sent; of `servers` the first `count` count.
    GrantRecord, GRANT_BYTES;
    home: u64,
    file: u64,
    expires: u64,
    stripe: u32,
    count: u32,
    uid: u32,
    rights: u32,
    owner: u32,
    group: u32,
    servers: [u64; MOST_SERVERS],
    signature: [u8; 32],
}

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
        let record = GrantRecord::take(bytes);
        let count = record.count as usize;
        if count == 0 || count > MOST_SERVERS || record.stripe == 0 {
            return Err(Malformed("grant without stripes or servers"));
        }
        Ok(Self {
            layout: Layout {
                home: record.home,
                file: record.file,
                stripe: record.stripe,
                servers: record.servers[..count].to_vec(),
            },
            expires: record.expires,
            uid: record.uid,
            rights: record.rights,
            owner: record.owner,
            group: record.group,
        })
    }

    /// The bytes that are signed.
    pub fn to_bytes(&self) -> [u8; SIGNED_BYTES] {
        let layout = &self.layout;
        let count = layout.servers.len().min(MOST_SERVERS);
        let mut servers = [0; MOST_SERVERS];
        servers[..count].copy_from_slice(&layout.servers[..count]);
        let record = GrantRecord {
            home: layout.home,
            file: layout.file,
            expires: self.expires,
            stripe: layout.stripe,
            count: count as u32,
            uid: self.uid,
            rights: self.rights,
            owner: self.owner,
            group: self.group,
            servers,
            signature: [0; 32],
        };
        record.to_bytes()[..SIGNED_BYTES]
            .try_into()
            .expect("fewer than it has")
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
