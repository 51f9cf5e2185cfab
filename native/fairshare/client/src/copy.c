// Copying large pieces, to and from memory that another processor has in its cache or that nobody has.
#define _GNU_SOURCE
#include <string.h>

#include "accelerate.h"

enum {
    LINE = 64,
    STEP = 2 * LINE,
    AHEAD = 1024,  // bytes that are asked for before their turn
};

#ifdef __x86_64__
#include <emmintrin.h>

// libc copies such sizes by one string instruction (rep movsb), which waits for each line of the destination:
// lines that were asked for before come in half to two thirds of the time where they are not in this
// processor's cache.
void fs_copy(void *to, const void *from, size_t size) {
    char *t = to;
    const char *f = from;
    for (; size >= AHEAD + STEP; size -= STEP, t += STEP, f += STEP) {
        for (int line = 0; line < STEP; line += LINE) {
            __asm__ volatile("prefetchw %0" ::"m"(t[AHEAD + line]));
            __asm__ volatile("prefetcht0 %0" ::"m"(f[AHEAD + line]));
        }
        memcpy(t, f, STEP);  // of a size that compilers expand in place
    }
    memcpy(t, f, size);
}

// Past the caches, for another processor that shares none with this one (ways.c).
void fs_copy_away(void *to, const void *from, size_t size) {
    char *t = to;
    const char *f = from;
    size_t odd = -(uintptr_t)t % LINE;  // lines that are stored in part are slow
    if (odd > size) odd = size;
    memcpy(t, f, odd);
    for (size -= odd, t += odd, f += odd; size >= AHEAD + STEP; size -= STEP, t += STEP, f += STEP) {
        for (int line = 0; line < STEP; line += LINE) _mm_prefetch(f + AHEAD + line, _MM_HINT_T0);
        for (size_t at = 0; at < STEP; at += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(void *)(t + at), _mm_loadu_si128((const __m128i *)(const void *)(f + at)));
    }
    memcpy(t, f, size);
    _mm_sfence();  // before anybody is told
}
#else
void fs_copy_away(void *to, const void *from, size_t size) { memcpy(to, from, size); }
void fs_copy(void *to, const void *from, size_t size) { memcpy(to, from, size); }
#endif
