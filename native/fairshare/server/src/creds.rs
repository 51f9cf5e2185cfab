//! Whose rights the kernel checks: each worker takes on the identity of the client it works for.
//!
//! setfsuid drops the capabilities that override permissions, so that the backing file system itself
//! decides, with its modes, ACLs and quotas; nothing of that is imitated here.

use std::cell::RefCell;

use crate::errno::{Errno, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creds {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

impl Creds {
    /// Those that the server itself runs with.
    pub fn own() -> Self {
        // SAFETY: these calls have no preconditions; the buffer is as long as said.
        unsafe {
            let count = libc::getgroups(0, std::ptr::null_mut()).max(0);
            let mut groups = vec![0; count as usize];
            let count = libc::getgroups(count, groups.as_mut_ptr()).max(0);
            groups.truncate(count as usize);
            Self {
                uid: libc::geteuid(),
                gid: libc::getegid(),
                groups,
            }
        }
    }
}

/// Whether this process can act for others.
pub fn can_impersonate() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() == 0 }
}

thread_local! {
    static CURRENT: RefCell<Option<Creds>> = const { RefCell::new(None) };
}

/// Take on `creds` for the file system calls of this thread. EPERM where the server may not.
pub fn assume(creds: &Creds) -> Result<()> {
    CURRENT.with(|current| {
        if current.borrow().as_ref() == Some(creds) {
            return Ok(());
        }
        if !can_impersonate() {
            // SAFETY: no preconditions.
            return if creds.uid == unsafe { libc::geteuid() } {
                Ok(())
            } else {
                Err(Errno(libc::EPERM))
            };
        }
        *current.borrow_mut() = None;
        // SAFETY: raw calls, so that they change this thread alone (the libc wrapper of setgroups
        // changes all threads). The buffer is valid for the length given.
        unsafe {
            libc::setfsuid(0); // back to full rights first, or setgroups may be refused
            if libc::syscall(libc::SYS_setgroups, creds.groups.len(), creds.groups.as_ptr()) < 0 {
                return Err(Errno::last());
            }
            libc::setfsgid(creds.gid);
            libc::setfsuid(creds.uid);
            // Neither call reports failure; asking with an impossible id tells what is in force.
            if libc::setfsuid(u32::MAX) as u32 != creds.uid || libc::setfsgid(u32::MAX) as u32 != creds.gid {
                return Err(Errno(libc::EPERM));
            }
        }
        *current.borrow_mut() = Some(creds.clone());
        Ok(())
    })
}
