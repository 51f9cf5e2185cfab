//! Copies from and to mapped files that survive an unreadable page.
//!
//! A page whose medium fails raises SIGBUS. The handler puts an empty page there, so that the copy comes
//! to its end, and marks the thread; the request then fails with EIO, and the server lives.

use std::cell::Cell;
use std::sync::atomic::{compiler_fence, Ordering};

thread_local! {
    static COPYING: Cell<bool> = const { Cell::new(false) };
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// Run a copy. False: a page could not be reached, and what was copied is worthless.
pub fn guarded(copy: impl FnOnce()) -> bool {
    FAULTED.set(false);
    COPYING.set(true);
    // For the handler, which runs on this thread: what it looks at is set before the copy and until its end.
    compiler_fence(Ordering::SeqCst);
    copy();
    compiler_fence(Ordering::SeqCst);
    COPYING.set(false);
    !FAULTED.get()
}

/// Catch SIGBUS from now on. To be called once, before any worker starts.
pub fn install() {
    // SAFETY: the handler calls nothing but mmap, signal and raise, which are plain system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    const PAGE: usize = 4096;
    // SAFETY: the kernel passes a valid siginfo; the page replaced is one that cannot be used anyway.
    unsafe {
        if COPYING.get() {
            let page = (*info).si_addr() as usize & !(PAGE - 1);
            let replaced = libc::mmap(
                page as *mut libc::c_void,
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
            if replaced != libc::MAP_FAILED {
                FAULTED.set(true);
                return;
            }
        }
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        libc::raise(libc::SIGBUS);
    }
}
