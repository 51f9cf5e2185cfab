// Children that nobody told us of.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

// A child that was made past libc's fork (_Fork, clone by number) has our sessions, which are its parent's, and nobody
// told us. A page that the kernel empties in a child tells.
static atomic_uchar *heard;

void fs_listen_for_forks(void) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = REAL(mmap)(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, size, MADV_WIPEONFORK) < 0) return;
    heard = page;
    *heard = 1;
}

void fs_hear_fork(void) {
    if (!heard || *heard) return;
    *heard = 1;
    // Locks may be held by threads that the child does not have. A position that its parent kept cannot be shared
    // any more, so such a file is lost to the child.
    fs_forget_sessions();
    fs_renew_locks();
    fs_lose_positions();
}

void fs_heard_fork(void) {
    if (heard) *heard = 1;
}
