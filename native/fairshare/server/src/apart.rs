//! A mount that only those see who are let into its namespaces: what an ordinary user may have without any program's help.
//! A process of its own makes the namespaces and the mount and stays there, so that others can join it; the mount's
//! questions are answered from outside.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What the process does there, each of which may be refused.
const STEPS: [&str; 4] = [
    "this system does not let you have a user namespace",
    "the user namespace cannot be given your user and group",
    "/dev/fuse cannot be opened",
    "a user namespace may not mount FUSE here",
];

/// Mount on a folder; where questions come from, and the process that others join. The error is a sentence.
pub fn mount(path: &Path) -> Result<(OwnedFd, u32), String> {
    let what = |error: std::io::Error| format!("cannot mount on {}: {error}", path.display());
    let (ours, theirs) = UnixStream::pair().map_err(what)?;
    // SAFETY: no preconditions.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let name = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    let place = CString::new(name).map_err(|error| what(error.into()))?;
    let maps = [
        (c"/proc/self/setgroups", CString::from(c"deny")),
        (
            c"/proc/self/uid_map",
            CString::new(format!("{uid} {uid} 1")).expect("no zero"),
        ),
        (
            c"/proc/self/gid_map",
            CString::new(format!("{gid} {gid} 1")).expect("no zero"),
        ),
    ];
    // "fd=" and a number are put together by the child: it opens the device in its own namespace, always as number 3 of
    // those that it has, to which it is moved.
    let options = CString::new(format!(
        "fd={DEVICE},rootmode=40000,user_id={uid},group_id={gid},default_permissions"
    ))
    .expect("no zero");
    // SAFETY: between fork and its end the child calls the kernel alone, with memory that was made before.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let step = namespaced_mount(&maps, &place, &options);
            let _ = send(theirs.as_raw_fd(), step);
            if step == STEPS.len() as u8 {
                libc::close(DEVICE);
                loop {
                    libc::pause();
                }
            }
            libc::_exit(1);
        }
    }
    if child < 0 {
        return Err(what(std::io::Error::last_os_error()));
    }
    drop(theirs);
    let (step, device) = receive(ours.as_raw_fd()).map_err(what)?;
    match device {
        Some(device) if usize::from(step) == STEPS.len() => Ok((device, child as u32)),
        _ => {
            // SAFETY: our own child.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            let reason = STEPS.get(usize::from(step)).unwrap_or(&"it ended");
            Err(format!("cannot mount on {}: {reason}", path.display()))
        }
    }
}

/// The child's number of /dev/fuse.
const DEVICE: i32 = 200;

/// How many steps were made.
unsafe fn namespaced_mount(maps: &[(&std::ffi::CStr, CString); 3], place: &CString, options: &CString) -> u8 {
    // SAFETY: C strings, and descriptors of our own.
    unsafe {
        if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) != 0 {
            return 0;
        }
        for (file, text) in maps {
            let fd = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            let length = text.as_bytes().len();
            if libc::write(fd, text.as_ptr().cast(), length) != length as isize {
                return 1;
            }
            libc::close(fd);
        }
        let none = std::ptr::null();
        libc::mount(
            c"none".as_ptr(),
            c"/".as_ptr(),
            none,
            libc::MS_REC | libc::MS_PRIVATE,
            none.cast(),
        );
        let device = libc::open(c"/dev/fuse".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if device < 0 || libc::dup3(device, DEVICE, libc::O_CLOEXEC) != DEVICE {
            return 2;
        }
        libc::close(device);
        let (kind, flags) = (c"fuse.fairshare".as_ptr(), libc::MS_NOSUID | libc::MS_NODEV);
        if libc::mount(
            c"fairshare".as_ptr(),
            place.as_ptr(),
            kind,
            flags,
            options.as_ptr().cast(),
        ) != 0
        {
            return 3;
        }
        STEPS.len() as u8
    }
}

/// Send the step, with the device where it is the last.
unsafe fn send(socket: i32, step: u8) -> isize {
    // SAFETY: a message of memory that lives over the call; the control buffer is aligned and large enough.
    unsafe {
        let mut control = [0_u64; 4];
        let mut part = libc::iovec {
            iov_base: (&raw const step).cast_mut().cast(),
            iov_len: 1,
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        if usize::from(step) == STEPS.len() {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as usize;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(DEVICE);
        }
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL)
    }
}

fn receive(socket: i32) -> std::io::Result<(u8, Option<OwnedFd>)> {
    let mut step = u8::MAX;
    // SAFETY: as above; a descriptor that came is ours.
    unsafe {
        let mut control = [0_u64; 4];
        let mut part = libc::iovec {
            iov_base: (&raw mut step).cast(),
            iov_len: 1,
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = std::mem::size_of_val(&control);
        if libc::recvmsg(socket, &mut message, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        let device = (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS)
            .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned()));
        Ok((step, device))
    }
}
