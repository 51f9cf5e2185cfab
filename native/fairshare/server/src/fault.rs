//! Copies from and to mapped files that survive an unreadable page.
//!
//! A page whose medium fails raises SIGBUS. The handler puts an empty page there, so that the copy comes
//! to its end, and marks the mapping before: all threads see that page, and each looks at the mark after its
//! copy. What was copied then is worthless, and the server lives.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{compiler_fence, AtomicBool, AtomicUsize, Ordering};

thread_local! {
    /// The mark of the mapping that this thread copies from or to.
    static COPYING: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
}

static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Run a copy. False: a page of the mapping could not be reached, by this thread or another, and what was
/// copied is worthless.
pub fn guarded(broken: &AtomicBool, copy: impl FnOnce()) -> bool {
    COPYING.set(broken);
    // For the handler, which runs on this thread: what it looks at is set before the copy and until its end.
    compiler_fence(Ordering::SeqCst);
    copy();
    compiler_fence(Ordering::SeqCst);
    COPYING.set(ptr::null());
    !broken.load(Ordering::SeqCst)
}

/// Catch SIGBUS from now on. To be called once, before any worker starts.
pub fn install() {
    // SAFETY: no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(page as usize, Ordering::Relaxed);
    // SAFETY: the handler calls nothing but mmap, signal and raise, which are plain system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let size = PAGE.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a valid siginfo; the page replaced is one that cannot be used anyway.
    unsafe {
        if let Some(broken) = COPYING.get().as_ref() {
            broken.store(true, Ordering::SeqCst);
            let page = (*info).si_addr() as usize & !(size - 1);
            let replaced = libc::mmap(
                page as *mut libc::c_void,
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
            if replaced != libc::MAP_FAILED {
                return;
            }
        }
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        libc::raise(libc::SIGBUS);
    }
}
