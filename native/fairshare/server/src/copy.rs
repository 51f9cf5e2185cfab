//! Copying large pieces, between a client's segment and a file's pages.
//!
//! libc copies such sizes by one string instruction (`rep movsb`), which waits for each line of the
//! destination: lines that were asked for before come in half to two thirds of the time where they are not
//! in this processor's cache.

/// Bytes that are asked for before their turn.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 1024;
/// Bytes copied at a time, of a number that compilers expand in place.
#[cfg(target_arch = "x86_64")]
const STEP: usize = 128;

/// What [`std::ptr::copy_nonoverlapping`] does.
///
/// # Safety
/// As there. Others may change what is read meanwhile: then nobody knows what was copied.
#[cfg(target_arch = "x86_64")]
pub unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    use std::arch::asm;
    let mut done = 0;
    // SAFETY: all that is touched lies within `length`; asking for a line has no effect but on caches.
    unsafe {
        while length - done >= AHEAD + STEP {
            let (f, t) = (from.add(done), to.add(done));
            for line in [AHEAD, AHEAD + 64] {
                asm!("prefetchw [{}]", in(reg) t.add(line), options(nostack, preserves_flags));
                asm!("prefetcht0 [{}]", in(reg) f.add(line), options(nostack, preserves_flags));
            }
            std::ptr::copy_nonoverlapping(f, t, STEP);
            done += STEP;
        }
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), length - done);
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub use std::ptr::copy_nonoverlapping as copy;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_and_alignment() {
        let from: Vec<u8> = (0..70_000_usize).map(|at| ((at * 7919) >> 5) as u8).collect();
        for length in [0, 1, 127, 128, 1151, 1152, 1153, 4096, 32 << 10, (64 << 10) + 77] {
            for (first, second) in [(0, 0), (1, 0), (0, 5), (3, 16)] {
                let mut to = vec![0xee; length + 64];
                // SAFETY: both hold as much.
                unsafe { copy(from[first..].as_ptr(), to[second..].as_mut_ptr(), length) };
                assert!(to[..second].iter().all(|byte| *byte == 0xee));
                assert_eq!(to[second..second + length], from[first..first + length]);
                assert!(to[second + length..].iter().all(|byte| *byte == 0xee));
            }
        }
    }
}
