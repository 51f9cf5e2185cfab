//! What all messages keep to.

/// Changes whenever old clients and new servers would misunderstand each other.
pub const VERSION: u32 = 4;

/// Longest path (bytes, without a NUL) that a request may carry.
pub const MAX_PATH: usize = 4095;

/// The handle that stands for the root of the served tree.
pub const ROOT: u64 = 0;
