// Whether the copies of a large transfer go through the caches or past them: what is faster is found by trying.
//
// A line that one processor has changed in its cache comes to another one faster than from memory where the two share
// a cache, and half as fast where they do not. Which it is a virtual machine does not say, and it changes as its host
// moves it.
#define _GNU_SOURCE
#include <time.h>

#include "accelerate.h"

enum {
    LEAST = 2 * FS_SLOT_BYTES,  // bytes of a transfer that takes long enough to say something
    ROUND = 64,                 // transfers of which
    TRIALS = 2,                 // so many are made the other way
    FORGET = 16,                // a part of what is known with each transfer
};

bool fs_goes_away(struct session *s, struct ways *w, size_t size, struct timespec *began) {
    if (size < LEAST) return false;
    clock_gettime(CLOCK_MONOTONIC, began);
    if (!fs_far(s)) return false;
    unsigned through = atomic_load_explicit(&w->cost[0], memory_order_relaxed);
    unsigned past = atomic_load_explicit(&w->cost[1], memory_order_relaxed);
    unsigned n = atomic_fetch_add_explicit(&w->calls, 1, memory_order_relaxed);
    // Past them is better for whoever else wants the caches, where it costs this one next to nothing.
    bool better = past < through + through / 16;
    return better != (n % ROUND < TRIALS);
}

// The least that was seen lately: the others have waited for something else.
void fs_learn_way(struct ways *w, bool away, size_t size, const struct timespec *began) {
    if (size < LEAST) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ns = (double)(now.tv_sec - began->tv_sec) * 1e9 + (double)(now.tv_nsec - began->tv_nsec);
    double cost = ns / (double)size * (1 << 20);
    unsigned seen = cost < 1e9 ? (unsigned)cost + 1 : 1000000000;
    unsigned known = atomic_load_explicit(&w->cost[away], memory_order_relaxed);
    known += known / FORGET;
    atomic_store_explicit(&w->cost[away], known && known < seen ? known : seen, memory_order_relaxed);
}
