//! Descriptors that clients send along (SCM_RIGHTS), for which nobody asked. Whoever reads the bytes that they came with,
//! or closes the socket in which they lie, closes them; and closing the last one of a file may take long: a TCP socket
//! with SO_LINGER waits as long as its owner likes, a large file without a name frees its data. No worker does that.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Linux 6.16; the crate does not know it yet.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Let the kernel refuse them to whoever sends, on this socket and those that come through it. Older ones cannot.
pub fn refuse(socket: BorrowedFd<'_>) {
    let no: libc::c_int = 0;
    // SAFETY: an int and its size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const no).cast(),
            4,
        );
    }
}

/// Whether the kernel refuses them.
pub fn are_refused(socket: BorrowedFd<'_>) -> bool {
    let (mut passes, mut length): (libc::c_int, libc::socklen_t) = (1, 4);
    // SAFETY: an int and its size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw mut passes).cast(),
            &raw mut length,
        )
    };
    result == 0 && passes == 0
}

/// How many bytes can be read into `buffer` that none came with. An error where some came with them or right behind them.
pub fn peek(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a message without room for descriptors: looked at, they stay where they are, and the kernel says so.
    let (count, flags) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        let count = libc::recvmsg(
            socket.as_raw_fd(),
            &raw mut message,
            libc::MSG_PEEK | libc::MSG_DONTWAIT,
        );
        (count, message.msg_flags)
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    if flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    Ok(count as usize)
}

/// Whether bytes lie in a socket, and maybe descriptors with them.
pub fn may_lie_in(socket: BorrowedFd<'_>) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: an int, as the call wants.
    unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONREAD, &raw mut bytes) == 0 && bytes > 0 }
}
