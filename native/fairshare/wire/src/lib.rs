//! What clients and servers of fairshare say to each other.
//!
//! Only bytes: no I/O and no state, so that all that reads hostile input can be fuzzed alone. Each record has one
//! definition here; the C client's header ([`header`]) and the Python module ([`python`]) are made from these.
//!
//! A conversation is a stream of frames ([`FrameHeader`], then a body) on a Unix or TCP socket. A
//! local client that asked for it in [`Hello`] posts its requests in shared memory ([`segment`])
//! instead, and keeps the socket for descriptors and as a sign of life.
//!
//! All integers are little-endian; results below zero are `-errno` of Linux.

mod entry;
mod frame;
pub mod header;
mod hello;
mod limits;
pub mod python;
mod record;
mod request;
pub mod segment;
mod table;
pub mod ticket;
mod vouched;

pub use entry::{entries, push_entry, Attributes, Entry, HeldLock, Statfs, ATTRIBUTES_BYTES, STATFS_BYTES};
pub use frame::{FrameHeader, FRAME_BYTES, FRAME_MAGIC, MAX_BODY};
pub use hello::{
    answer, Hello, Welcome, CHALLENGE_BYTES, NONCE_BYTES, NOTICE, PROOF_BYTES, WANT_NOTICES, WANT_SEGMENT,
    WELCOME_BYTES,
};
pub use limits::{MAX_PATH, ROOT, VERSION};
pub use record::Malformed;
pub use request::{flags, mask, Op, Reply, Request, REPLY_BYTES, REQUEST_BYTES};
pub use table::{TableEntry, TableHead, TABLE_ENTRY_BYTES, TABLE_HEAD_BYTES, TABLE_MAGIC};
pub use ticket::{Ticket, TICKET_BYTES};
pub use vouched::{Vouched, IOCTL, SOCKET_BYTES, VOUCHED_BYTES};
