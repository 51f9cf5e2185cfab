//! Where things lie in the shared memory of a session.
//!
//! The server makes it (a sealed memfd, one for each session) and passes it over the socket. The
//! client owns the slots' contents until it posts them, the server until it answers; neither
//! believes anything else that it reads there.
//!
//! ```text
//! 0     magic, version, slots, slot_bytes
//! 64    posted: one bit for each slot (u32), set by the client, taken by the server
//! 128   armed (u32): the server sleeps; whoever clears it sends a frame that wakes it
//! 4096  slots x 256 bytes: state (u32), at 16 the request, at 128 the reply; on which processors (u32, from 1; 0:
//!       unknown) the client was when it posted (at 160) and the server when it answered (at 164): how each copies best
//! 8192  slots x slot_bytes: paths and data
//! ```

pub const MAGIC: u64 = 0x4553_5241_4853_5246;
pub const SLOTS: usize = 16;
pub const SLOT_BYTES: usize = 128 << 10;

pub const POSTED_AT: usize = 64;
pub const ARMED_AT: usize = 128;
pub const SLOTS_AT: usize = 4096;
pub const SLOT_STRIDE: usize = 256;
pub const REQUEST_AT: usize = 16;
pub const REPLY_AT: usize = 128;
pub const CLIENT_AT: usize = 160;
pub const SERVER_AT: usize = 164;
pub const DATA_AT: usize = 8192;
pub const BYTES: usize = DATA_AT + SLOTS * SLOT_BYTES;

/// States of a slot. The client waits on the state by futex after changing POSTED to WAITED.
pub const FREE: u32 = 0;
pub const POSTED: u32 = 1;
pub const WAITED: u32 = 2;
pub const DONE: u32 = 3;
