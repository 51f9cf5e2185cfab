//! Whose rights the kernel checks: each worker takes on the identity of the client it works for.
//!
//! setfsuid drops the capabilities that override permissions, so that the backing file system itself
//! decides, with its modes, ACLs and quotas; nothing of that is imitated here. It leaves others, with which
//! quotas and reserved blocks do not count (CAP_SYS_RESOURCE): workers lay them down when they begin.

use std::cell::{Cell, RefCell};

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
    static LAID_DOWN: Cell<bool> = const { Cell::new(false) };
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

/// What a worker of root's keeps: taking on identities, what setfsuid itself takes and gives back, and looking
/// at /proc where it is hidden.
const KEPT: u64 = bit(6) | bit(7) | bit(19) | BY_SETFSUID;
/// CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, LINUX_IMMUTABLE, MKNOD, MAC_OVERRIDE.
const BY_SETFSUID: u64 = bit(0) | bit(1) | bit(2) | bit(3) | bit(4) | bit(9) | bit(27) | bit(32);
const SYS_RESOURCE: u64 = bit(24);

const fn bit(number: u32) -> u64 {
    1 << number
}

/// Lay down, for this thread, all rights that work for clients does not need.
pub fn lay_down() {
    LAID_DOWN.set(true);
    if can_impersonate() {
        let _ = change_effective(|now| now & KEPT);
    }
}

/// Whether this thread may work for clients.
pub fn has_laid_down() -> bool {
    LAID_DOWN.get()
}

/// Do something that a flood of descriptors on their way to clients must not keep this thread from.
pub fn beyond_limits<T>(what: impl FnOnce() -> T) -> T {
    let before = change_effective(|now| now | SYS_RESOURCE);
    let result = what();
    if let Ok(before) = before {
        let _ = change_effective(|_| before);
    }
    result
}

/// Do something with the server's own rights to files; the worker then goes on with the client's.
pub fn as_server<T>(what: impl FnOnce() -> T) -> T {
    if !can_impersonate() {
        return what();
    }
    // SAFETY: no preconditions; both change this thread alone.
    let _back = unsafe {
        Back {
            uid: libc::setfsuid(0) as u32,
            gid: libc::setfsgid(0) as u32,
        }
    };
    what()
}

/// A client's identity, to which a worker comes back whatever happens meanwhile.
struct Back {
    uid: u32,
    gid: u32,
}

impl Drop for Back {
    fn drop(&mut self) {
        // SAFETY: no preconditions; all change this thread alone.
        unsafe {
            libc::setfsgid(self.gid);
            libc::setfsuid(self.uid);
            if libc::setfsuid(u32::MAX) as u32 != self.uid || libc::setfsgid(u32::MAX) as u32 != self.gid {
                std::process::abort(); // rather than go on as root for a client
            }
        }
    }
}

/// Change the effective capabilities of this thread; what they were.
fn change_effective(change: impl FnOnce(u64) -> u64) -> Result<u64> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Head {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Default, Clone, Copy)]
    struct Half {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let head = Head {
        version: VERSION_3,
        pid: 0,
    };
    let mut halves = [Half::default(); 2];
    // SAFETY: structures as capget(2) has them.
    unsafe {
        check_long(libc::syscall(
            libc::SYS_capget,
            &raw const head,
            halves.as_mut_ptr(),
        ))?;
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let before = join(halves[0].effective, halves[1].effective);
        let after = change(before) & join(halves[0].permitted, halves[1].permitted);
        (halves[0].effective, halves[1].effective) = (after as u32, (after >> 32) as u32);
        check_long(libc::syscall(libc::SYS_capset, &raw const head, halves.as_ptr()))?;
        Ok(before)
    }
}

fn check_long(result: libc::c_long) -> Result<()> {
    crate::errno::check(result as libc::c_int).map(|_| ())
}
