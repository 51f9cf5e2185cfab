// Requests in the shared memory of the session.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "accelerate.h"

static atomic_uint *word(struct session *s, size_t at) { return (atomic_uint *)(void *)(s->segment + at); }

static atomic_uint *state(struct session *s, int slot) {
    return word(s, FS_SLOTS_AT + (size_t)slot * FS_SLOT_STRIDE);
}

bool fs_far(struct session *s) {
    unsigned on = atomic_load_explicit(&s->server_on, memory_order_relaxed);
    return on != 0 && on != (unsigned)(sched_getcpu() + 1);
}

unsigned char *fs_slot_data(struct session *s, int slot) {
    return s->segment + FS_DATA_AT + (size_t)slot * FS_SLOT_BYTES;
}

int fs_take_slot(struct session *s, bool in_turn, bool wait) {
    enum { ALL = (1u << FS_SLOTS) - 1 };
    for (;;) {
        unsigned used = atomic_load(&s->slots);
        unsigned free_ones = ~used & ALL;
        if (free_ones) {
            unsigned from = in_turn ? atomic_fetch_add_explicit(&s->turn, 1, memory_order_relaxed) % FS_SLOTS : 0;
            unsigned next = free_ones >> from << from;
            int slot = __builtin_ctz(next ? next : free_ones);
            if (atomic_compare_exchange_weak(&s->slots, &used, used | 1u << slot)) return slot;
            continue;
        }
        if (!wait || s->lost) return -1;
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);  // more threads than slots
    }
}

void fs_release_slot(struct session *s, int slot) { atomic_fetch_and(&s->slots, ~(1u << slot)); }

void fs_post(struct session *s, int slot, const struct fs_request *request) {
    size_t at = FS_SLOTS_AT + (size_t)slot * FS_SLOT_STRIDE;
    memcpy(s->segment + at + FS_REQUEST_AT, request, sizeof *request);
    atomic_store_explicit(word(s, at + FS_CLIENT_AT), (unsigned)(sched_getcpu() + 1), memory_order_relaxed);
    atomic_store(state(s, slot), FS_POSTED);
    atomic_fetch_or(word(s, FS_POSTED_AT), 1u << slot);
    atomic_uint *armed = word(s, FS_ARMED_AT);
    if (!atomic_load(armed) || !atomic_exchange(armed, 0)) return;
    // The server sleeps, and a frame without a body wakes it. A call that can do nothing to a file, should the number be
    // another's by now.
    struct fs_frame ring = {FS_FRAME_MAGIC, 0, FS_NOTICE};
    if (!fs_owns(s) || (send(s->socket, &ring, sizeof ring, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN))
        atomic_store(&s->lost, true);
}

static bool alive(struct session *s) {
    struct pollfd p = {.fd = s->socket, .events = POLLRDHUP};
    return !s->lost && fs_owns(s) && !(poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL));
}

static bool looked(struct session *s, int slot, int looks) {
    atomic_uint *at = state(s, slot);
    for (int look = 0; look < looks; look++) {
        if (atomic_load_explicit(at, memory_order_acquire) == FS_DONE) return true;
        __builtin_ia32_pause();
    }
    return false;
}

// Looking in vain costs as much as a few sleeps, and where the server has no processor of its own, or the storage is
// slow, it is always in vain: so look as long as two of three looks find something, and else once in a while, a few
// times: the first one may find the server asleep because we slept.
static bool looked_if_it_pays(struct session *s, int slot, struct luck *l, int looks) {
    enum { MOST_LUCK = 64, TRIAL = 6, PAUSE = 128 };
    if (looked(s, slot, 1)) return true;
    unsigned luck = atomic_load_explicit(&l->luck, memory_order_relaxed);
    if (luck == 0) {
        if (atomic_fetch_add_explicit(&l->unlucky, 1, memory_order_relaxed) % PAUSE) return false;
        luck = TRIAL;
    }
    bool found = looked(s, slot, looks);
    luck = found ? luck + (luck < MOST_LUCK) : luck > 2 ? luck - 2 : 0;
    atomic_store_explicit(&l->luck, luck, memory_order_relaxed);
    return found;
}

// A look lasts as long as a server takes that has to be woken first (shorter ones would never find one that is awake);
// of a piece, as long as it takes to be copied as well.
static bool soon_alone(struct session *s, int slot) { return looked_if_it_pays(s, slot, &s->alone, 400); }

bool fs_soon(struct session *s, int slot) { return looked_if_it_pays(s, slot, &s->pieces, 5000); }

int fs_sleep(struct session *s, int slot) {
    atomic_uint *at = state(s, slot);
    unsigned seen;
    while ((seen = atomic_load(at)) != FS_DONE) {
        if (seen == FS_POSTED && !atomic_compare_exchange_strong(at, &seen, FS_WAITED)) continue;
        if (s->lost) return LOST;
        // The server wakes us; should it die instead, the socket says so.
        struct timespec limit = {.tv_nsec = 200000000};
        long woken = syscall(SYS_futex, at, FUTEX_WAIT, FS_WAITED, &limit, NULL, 0);
        if (woken < 0 && errno == ETIMEDOUT && atomic_load(at) != FS_DONE && !alive(s)) return LOST;
    }
    return 0;
}

int fs_await(struct session *s, int slot, bool alone, struct fs_reply *reply) {
    bool soon = alone ? soon_alone(s, slot) : fs_soon(s, slot);
    if (!soon && fs_sleep(s, slot) == LOST) return LOST;
    size_t at = FS_SLOTS_AT + (size_t)slot * FS_SLOT_STRIDE;
    memcpy(reply, s->segment + at + FS_REPLY_AT, sizeof *reply);
    unsigned on = atomic_load_explicit(word(s, at + FS_SERVER_AT), memory_order_relaxed);
    atomic_store_explicit(&s->server_on, on, memory_order_relaxed);
    return 0;
}
