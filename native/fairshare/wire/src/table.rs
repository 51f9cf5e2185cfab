//! What servers tell each other of their jobs: a datagram of a head, entries, and an HMAC-SHA256 over both.

use crate::record::record;

pub const TABLE_MAGIC: [u8; 4] = *b"FSX1";
pub const TABLE_HEAD_BYTES: usize = 32;
pub const TABLE_ENTRY_BYTES: usize = 40;

record! {
    TableHead, TABLE_HEAD_BYTES;
    magic: [u8; 4],
    /// Of entries.
    count: u32,
    /// Of the table: later ones have greater ones.
    number: u64,
    server: u64,
    /// What the server can serve in an interval: the bits of a number of type f64.
    capacity: u64,
}

record! {
    /// A job on that server.
    TableEntry, TABLE_ENTRY_BYTES;
    job: u64,
    user: u32,
    group: u32,
    size: u32,
    priority: u32,
    served: u64,
    queued: u64,
}
