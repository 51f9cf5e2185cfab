// Reading, writing, cutting and syncing files whose data lie on several servers.
//
// The home server has the size. A write that needs more makes the file longer before it sends data, and
// holds off whoever wants to cut the file until all of it is there; so no object has data behind the end,
// and what an object does not have inside the file is zeros.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "session.h"
#include "stripe.h"

enum { AHEAD = 16 };  // pieces under way, on all servers together

struct piece {
    struct session *session;
    int slot;
    size_t at, size;
};

// Ask the home server until nobody is in the way; -EIO after as long as one waits for a server.
static int64_t ask(struct call *c) {
    double until = fs_seconds() + fs_config.patience;
    long pause = 50000;  // nanoseconds
    int64_t result;
    while ((result = fs_do(c)) == -EAGAIN) {
        if (fs_seconds() > until) return -EIO;
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        if (pause < 5000000) pause *= 2;
    }
    return result;
}

// Pieces on all servers at the same time, through shared memory. Returns whether all of them were moved
// whole; otherwise the caller does it all again, part by part (the offsets are fixed).
static bool together(struct stripes *s, bool write, char *buffer, size_t size, off_t offset) {
    struct session *sessions[MOST_SERVERS];
    for (int i = 0; i < s->count; i++) {
        struct session *one = fs_session(s->object[i]->server);
        if (!one || one->doorbell < 0 || fs_revive(one, s->object[i]) != 0) return false;
        sessions[i] = one;
    }
    struct piece ring[AHEAD];
    unsigned head = 0, tail = 0;
    size_t posted = 0;
    bool good = true;
    while (good || head != tail) {
        while (good && posted < size && head - tail < AHEAD) {
            struct stripe_part part = fs_stripe_part(s, offset + (off_t)posted, size - posted);
            if (part.size > FS_SLOT_BYTES) part.size = FS_SLOT_BYTES;
            struct session *on = sessions[part.server];
            int slot = fs_take_slot(on, true, head == tail);
            if (slot < 0) {
                good = head != tail;
                break;
            }
            struct fs_request r = {.op = write ? FS_WRITE : FS_READ, .handle = s->object[part.server]->handle,
                                   .size = part.size, .offset = part.offset};
            if (write) fs_copy(fs_slot_data(on, slot), buffer + posted, part.size);
            fs_post(on, slot, &r);
            ring[head++ % AHEAD] = (struct piece){on, slot, posted, part.size};
            posted += part.size;
        }
        if (head == tail) break;
        struct piece p = ring[tail++ % AHEAD];
        struct fs_reply reply;
        if (fs_await(p.session, p.slot, false, &reply) == LOST) {
            fs_lost(p.session);  // its slots are nobody's any more
            good = false;
            continue;
        }
        if (reply.result != (int64_t)p.size) good = false;
        if (good && !write) fs_copy(buffer + p.at, fs_slot_data(p.session, p.slot), p.size);
        fs_release_slot(p.session, p.slot);
    }
    return good;
}

// Part by part. Returns bytes moved before the first error, of which `*problem` then tells. What an object
// does not have is zeros in `buffer`, and `*holes` is set.
static size_t one_by_one(struct stripes *s, bool write, char *buffer, size_t size, off_t offset, int *problem,
                         bool *holes) {
    size_t done = 0;
    *problem = 0;
    while (done < size) {
        struct stripe_part part = fs_stripe_part(s, offset + (off_t)done, size - done);
        ssize_t moved = fs_whole(s->object[part.server], write, buffer + done, part.size, part.offset);
        if (moved < 0) {
            *problem = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : EIO;
            return done;
        }
        if ((size_t)moved < part.size) {
            if (write) {
                *problem = EIO;
                return done + (size_t)moved;
            }
            memset(buffer + done + moved, 0, part.size - (size_t)moved);
            *holes = true;
        }
        done += part.size;
    }
    return done;
}

static ssize_t read_at(struct description *d, char *buffer, size_t size, off_t offset, bool inside) {
    bool holes = false;
    int problem = 0;
    if (together(d->stripes, false, buffer, size, offset)) return (ssize_t)size;
    size_t done = one_by_one(d->stripes, false, buffer, size, offset, &problem, &holes);
    if (holes && !inside) {
        // Behind the end, or a hole? The end is asked for first and the data read after it, so that what
        // was written before is seen.
        struct fs_attributes a;
        if (fs_attributes_at(d, NULL, true, &a) < 0) return -1;
        off_t left = (off_t)a.size - offset;
        if (left <= 0) return 0;
        if ((uint64_t)left < size) size = (size_t)left;
        done = one_by_one(d->stripes, false, buffer, size, offset, &problem, &holes);
    }
    if (done > 0 || !problem) return (ssize_t)done;
    errno = problem;
    return -1;
}

static ssize_t read_some(struct description *d, char *buffer, size_t size, off_t offset) {
    if (offset >= 0) return read_at(d, buffer, size, offset, false);
    // At a position that processes share: the home server moves it, and says what there is to read.
    struct call c = {.request = {.op = FS_STRIPE_BEGIN, .flags = FS_READING, .size = size, .offset = FS_AT_POSITION},
                     .at = d};
    int64_t count = fs_do(&c);
    if (count <= 0) {
        errno = count < 0 ? (int)-count : errno;
        return count < 0 ? -1 : 0;
    }
    return read_at(d, buffer, (size_t)count, (off_t)c.reply.value, true);
}

static ssize_t write_some(struct description *d, char *buffer, size_t size, off_t offset) {
    struct call begin = {.request = {.op = FS_STRIPE_BEGIN, .size = size, .offset = offset}, .at = d};
    int64_t result = ask(&begin);
    if (result < 0) return fs_answer(result);
    off_t start = (off_t)begin.reply.value;
    bool holes;
    int problem = 0;
    size_t done = together(d->stripes, true, buffer, size, start)
                      ? size
                      : one_by_one(d->stripes, true, buffer, size, start, &problem, &holes);
    struct call end = {.request.op = FS_STRIPE_END, .at = d};
    fs_do(&end);
    if (done > 0 && d->flags & O_DSYNC && fs_striped_sync(d, 0) < 0) return -1;
    if (d->flags & O_APPEND && !d->shared) d->position = start + (off_t)done;
    if (done > 0 || !problem) return (ssize_t)done;
    errno = problem;
    return -1;
}

// The same request to all objects, those in shared memory at the same time. 0 or an errno.
static int to_all(struct stripes *s, struct fs_request request) {
    struct session *on[MOST_SERVERS] = {0};
    int slots[MOST_SERVERS], problem = 0;
    for (int i = 0; i < s->count; i++) {
        struct session *one = fs_session(s->object[i]->server);
        if (!one || one->doorbell < 0 || fs_revive(one, s->object[i]) != 0) continue;
        if ((slots[i] = fs_take_slot(one, false, false)) < 0) continue;
        on[i] = one;
        request.handle = s->object[i]->handle;
        fs_post(one, slots[i], &request);
    }
    for (int i = 0; i < s->count; i++) {
        struct fs_reply reply = {.result = -EIO};
        bool answered = on[i] && fs_await(on[i], slots[i], false, &reply) != LOST;
        if (answered) fs_release_slot(on[i], slots[i]);
        if (on[i] && !answered) fs_lost(on[i]);
        if (!answered) {  // not in shared memory, or the server went away: it is repeated where one can
            struct call c = {.request = request, .at = s->object[i]};
            reply.result = fs_do(&c);
        }
        if (reply.result < 0 && !problem) problem = reply.result == -ENOSPC || reply.result == -EDQUOT ? (int)-reply.result : EIO;
    }
    return problem;
}

int fs_striped_truncate(struct description *d, off_t size) {
    double until = fs_seconds() + fs_config.patience;
    for (;;) {
        struct call c = {.request = {.op = FS_TRUNCATE, .size = (uint64_t)size}, .at = d};
        int64_t result = ask(&c);
        if (result != 1) return fs_answer(result);
        // First see that all servers are there: a cut that ends half-way has emptied what it reached.
        int problem = to_all(d->stripes, (struct fs_request){.op = FS_DESCRIBE});
        if (!problem) problem = to_all(d->stripes, (struct fs_request){.op = FS_TRUNCATE, .size = (uint64_t)size});
        if (problem) {
            struct call end = {.request = {.op = FS_STRIPE_END, .flags = FS_SET}, .at = d};
            fs_do(&end);
            errno = problem;
            return -1;
        }
        struct call cut = {.request = {.op = FS_TRUNCATE, .flags = FS_SET, .size = (uint64_t)size}, .at = d};
        result = fs_do(&cut);
        if (result != -ESTALE) return fs_answer(result);
        if (fs_seconds() > until) return fs_answer(-EIO);  // the home server restarts again and again
    }
}

int fs_striped_sync(struct description *d, uint32_t flags) {
    int problem = to_all(d->stripes, (struct fs_request){.op = FS_FSYNC, .flags = flags});
    if (problem) {
        errno = problem;
        return -1;
    }
    struct call c = {.request = {.op = FS_FSYNC, .flags = flags}, .at = d};
    return fs_answer(fs_do(&c));
}

static ssize_t striped(struct description *d, bool write, void *buffer, size_t size, off_t offset) {
    if (size == 0) return 0;
    return write ? write_some(d, buffer, size, offset) : read_some(d, buffer, size, offset);
}

ssize_t fs_bulk(struct description *d, bool write, void *buffer, size_t size, off_t offset) {
    if (size > 0x7ffff000) size = 0x7ffff000;  // as the kernel does
    if (!d->stripes) return fs_whole(d, write, buffer, size, offset);
    fs_pin(d, true);
    fs_hear_fork();
    ssize_t result = striped(d, write, buffer, size, offset);
    fs_pin(d, false);
    return result;
}
