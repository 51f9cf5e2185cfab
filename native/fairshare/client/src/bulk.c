// Large reads and writes: pieces of a slot each, several under way, so that this process copies one piece while the server
// copies another. (Smaller ones at both ends, so that neither side copies alone for long, cost more than that wait: some
// microseconds each.)
#define _GNU_SOURCE
#include "accelerate.h"

enum { AHEAD = 12 };  // pieces under way

struct piece {
    int slot;
    size_t at, size;
};

// Bytes before the first error or short piece, if there are any.
ssize_t fs_bulk(struct session *s, uint64_t handle, bool write, char *buffer, size_t size, off_t offset) {
    struct piece ring[AHEAD];
    unsigned head = 0, tail = 0;
    size_t posted = 0, done = 0;
    ssize_t error = 0;
    bool stop = false;
    struct ways *ways = write ? &s->writes : &s->reads;
    struct timespec began = {0};
    bool away = fs_goes_away(s, ways, size, &began);
    while (!stop || head != tail) {
        while (!stop && posted < size && head - tail < AHEAD) {
            int slot = fs_take_slot(s, true, head == tail);
            if (slot < 0) {
                if (head == tail) return LOST;
                break;
            }
            size_t now = size - posted < FS_SLOT_BYTES ? size - posted : FS_SLOT_BYTES;
            struct fs_request r = {.op = write ? FS_WRITE : FS_READ, .handle = handle, .size = now,
                                   .offset = offset + (off_t)posted,
                                   .flags = (write && posted > 0 ? FS_CHAINED : 0) | (away ? FS_AWAY : 0)};
            if (write) (away ? fs_copy_away : fs_copy)(fs_slot_data(s, slot), buffer + posted, now);
            fs_post(s, slot, &r);
            ring[head++ % AHEAD] = (struct piece){slot, posted, now};
            posted += now;
        }
        if (head == tail) break;
        struct fs_reply last;
        // Nothing is to be done for the pieces of a write but to wait for them: one sleep, for the last one.
        if (write && posted == size && head - tail > 1 &&
            fs_await(s, ring[(head - 1) % AHEAD].slot, false, &last) == LOST) return LOST;
        // A read that has to sleep sleeps until half of them are there: where both processes share a processor,
        // each sleep lets the other one go on, and one for every piece would cost more than the copies. Where they do
        // not, it begins as soon as it can.
        unsigned pieces = head - tail;
        if (!write && pieces > 2 && !fs_soon(s, ring[tail % AHEAD].slot) &&
            fs_sleep(s, ring[(tail + (fs_far(s) ? 1 : pieces / 2)) % AHEAD].slot) == LOST)
            return LOST;
        struct piece p = ring[tail++ % AHEAD];
        struct fs_reply reply;
        if (fs_await(s, p.slot, size <= FS_SLOT_BYTES / 2, &reply) == LOST) return LOST;  // all are repeated by the kernel: offsets are fixed
        if (!stop) {
            if (reply.result < 0) {
                error = (ssize_t)reply.result;
                stop = true;
            } else {
                size_t moved = (size_t)reply.result < p.size ? (size_t)reply.result : p.size;
                if (!write) fs_copy(buffer + p.at, fs_slot_data(s, p.slot), moved);
                done += moved;
                stop = moved < p.size || done == size;
            }
        }
        fs_release_slot(s, p.slot);
    }
    if (done == size) fs_learn_way(ways, away, size, &began);
    return done > 0 ? (ssize_t)done : error;
}
