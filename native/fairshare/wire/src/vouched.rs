//! What a mount tells the preload library of an open file: by an ioctl on its descriptor.

use crate::record::record;

pub const VOUCHED_BYTES: usize = 136;
/// Of a Unix socket's path, with a NUL behind it.
pub const SOCKET_BYTES: usize = 107;
/// `_IOR(0xfb, 1, struct fs_vouched)`.
pub const IOCTL: u32 = 2 << 30 | (VOUCHED_BYTES as u32) << 16 | 0xfb << 8 | 1;

record! {
    Vouched, VOUCHED_BYTES;
    /// By which the server knows the open file.
    handle: u64,
    /// What is shown to the server, and what it has to answer.
    voucher: u64,
    secret: u64,
    socket: [u8; 112],
}

impl Vouched {
    /// From what [`crate::Op::Vouch`] came to; zeros where bytes are missing.
    pub fn new(data: &[u8], voucher: u64, socket: &[u8]) -> Self {
        let word = |at: usize| {
            let bytes = data.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let mut path = [0; 112];
        let length = socket.len().min(SOCKET_BYTES);
        path[..length].copy_from_slice(&socket[..length]);
        Self {
            handle: word(0),
            voucher,
            secret: word(8),
            socket: path,
        }
    }
}
