//! Copying large pieces, between a client's segment and a file's pages.
//!
//! libc copies such sizes by one string instruction (`rep movsb`), which waits for each line of the
//! destination: lines that were asked for before come in half to two thirds of the time where they are not
//! in this processor's cache.
//!
//! What another processor reads next may go past the caches ([`copy_away`]): lines that are changed in one processor's
//! cache come slower to another one than from memory where the two share no cache. The client finds out (`ways.c`).

/// Bytes that are asked for before their turn.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 1024;
/// Of a cache.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
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

/// What [`copy`] does, for a processor that is not this one.
///
/// # Safety
/// As [`copy`].
#[cfg(target_arch = "x86_64")]
pub unsafe fn copy_away(from: *const u8, to: *mut u8, length: usize) {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128, _MM_HINT_T0,
    };
    const WORD: usize = size_of::<__m128i>();
    let mut done = to.align_offset(LINE).min(length); // lines that are stored in part are slow
                                                      // SAFETY: all that is touched lies within `length`, and what is stored is aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, done);
        while length - done >= AHEAD + STEP {
            let (f, t) = (from.add(done), to.add(done));
            for line in [AHEAD, AHEAD + 64] {
                _mm_prefetch::<_MM_HINT_T0>(f.add(line).cast());
            }
            for at in (0..STEP).step_by(WORD) {
                _mm_stream_si128(t.add(at).cast(), _mm_loadu_si128(f.add(at).cast()));
            }
            done += STEP;
        }
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), length - done);
        _mm_sfence(); // before anybody is told
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub use std::ptr::{copy_nonoverlapping as copy, copy_nonoverlapping as copy_away};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_and_alignment() {
        let from: Vec<u8> = (0..70_000_usize).map(|at| ((at * 7919) >> 5) as u8).collect();
        for length in [0, 1, 127, 128, 1151, 1152, 1153, 4096, 32 << 10, (64 << 10) + 77] {
            for (first, second) in [(0, 0), (1, 0), (0, 5), (3, 16)] {
                for away in [false, true] {
                    let mut to = vec![0xee; length + 64];
                    let (source, target) = (from[first..].as_ptr(), to[second..].as_mut_ptr());
                    // SAFETY: both hold as much.
                    unsafe {
                        if away {
                            copy_away(source, target, length);
                        } else {
                            copy(source, target, length);
                        }
                    }
                    assert!(to[..second].iter().all(|byte| *byte == 0xee));
                    assert_eq!(to[second..second + length], from[first..first + length]);
                    assert!(to[second + length..].iter().all(|byte| *byte == 0xee));
                }
            }
        }
    }
}
