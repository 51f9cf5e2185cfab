// Reads and writes of files, and objects, that lie on one server. Large ones: pieces of a slot each, several under way, so that this process copies one piece
// while the server copies another. (Smaller ones at both ends, so that neither side copies alone for long, cost more than
// that wait: some microseconds each.)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "session.h"

enum { AHEAD = 12 };  // pieces under way

struct piece {
    int slot;
    size_t at, size;
};

// Over the socket, or where order matters (appending, a shared position): one piece after the other.
static ssize_t in_order(struct description *d, bool write, char *buffer, size_t size, off_t offset) {
    const size_t most = 1 << 20;
    // An append of up to half a slot is one request and so stays in one piece; larger ones go over the
    // socket, whose frames hold 1 MiB.
    size_t done = 0;
    while (done < size || size == 0) {
        size_t now = size - done < most ? size - done : most;
        struct call c = {.request = {.op = write ? FS_WRITE : FS_READ, .size = now,
                                     .offset = offset < 0 ? FS_AT_POSITION : offset + (off_t)done},
                         .at = d};
        if (write) {
            c.payload = buffer + done;
            c.payload_len = now;
        } else {
            if (now > FS_SLOT_BYTES && !fs_remote(d->server))
                c.request.size = now = FS_SLOT_BYTES;
            c.out = buffer + done;
            c.out_len = now;
        }
        int64_t result = fs_do(&c);
        if (result < 0) {
            if (done > 0) return (ssize_t)done;
            errno = (int)-result;
            return -1;
        }
        done += (size_t)result;
        // Only an append learns here where it ended; the caller owns every other position.
        if (write && d->flags & O_APPEND) d->position = (off_t)c.reply.value;
        if (size == 0 || (size_t)result < now) break;
    }
    return (ssize_t)done;
}

// Returns bytes moved before the first error or short piece; -errno for an error at once; LOST.
static ssize_t pipelined(struct session *s, struct description *d, bool write, char *buffer, size_t size,
                         off_t offset) {
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
            struct fs_request r = {.op = write ? FS_WRITE : FS_READ, .handle = d->handle, .size = now,
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
        if (fs_await(s, p.slot, size <= FS_SLOT_BYTES / 2, &reply) == LOST) return LOST;  // all are repeated: offsets are fixed
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

static ssize_t whole(struct description *d, bool write, void *buffer, size_t size, off_t offset) {
    bool append = write && d->flags & O_APPEND;
    size_t before = 0;  // written by earlier rounds
    for (int attempt = 0; attempt < 100; attempt++) {
        struct session *s = fs_session_of(d);
        if (!s) return -1;
        if (append || offset < 0 || s->doorbell < 0 || size == 0)
            return in_order(d, write, buffer, size, append ? FS_AT_POSITION : offset);
        int problem = fs_revive(s, d);
        if (problem < 0 && problem != LOST) {
            errno = -problem;
            return -1;
        }
        ssize_t result = problem == LOST ? LOST
                                         : pipelined(s, d, write, (char *)buffer + before, size - before,
                                                     offset + (off_t)before);
        if (result == LOST) {
            fs_lost(s);
            continue;
        }
        if (result < 0 && before == 0) return fs_answer(result);
        if (result > 0) before += (size_t)result;
        // A write that stopped short has room for more, or an error to tell.
        if (!write || result <= 0 || before == size) return (ssize_t)before;
        attempt = 0;
    }
    errno = EIO;
    return -1;
}

ssize_t fs_whole(struct description *d, bool write, void *buffer, size_t size, off_t offset) {
    fs_pin(d, true);
    fs_hear_fork();
    ssize_t result = whole(d, write, buffer, size, offset);
    fs_pin(d, false);
    return result;
}
