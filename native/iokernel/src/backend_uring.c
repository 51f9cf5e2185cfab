/*
 * POSIX files with several operations in flight (--queue-depth), through
 * io_uring's system calls; no library. Buffers are not registered and the
 * kernel is not polled: what is measured is what a program gets by default.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "clock.h"
#include "options_data.h"
#include "pattern.h"
#include "transfer.h"

struct ring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    void *sq_memory, *cq_memory;
    size_t sq_size, cq_size, sqe_size;
    unsigned queued; /* prepared, not yet handed to the kernel */
};

static int ring_setup(unsigned entries, struct io_uring_params *p)
{
    memset(p, 0, sizeof *p);
    return (int)syscall(SYS_io_uring_setup, entries, p);
}

bool backend_uring_available(void)
{
    struct io_uring_params p;
    int fd = ring_setup(2, &p);
    if (fd < 0)
        return false;
    close(fd);
    /* read and write without vectors came in 5.6, together with this feature */
    return (p.features & IORING_FEAT_RW_CUR_POS) != 0;
}

static void ring_close(struct ring *r)
{
    if (r->sqes)
        munmap(r->sqes, r->sqe_size);
    if (r->cq_memory)
        munmap(r->cq_memory, r->cq_size);
    if (r->sq_memory)
        munmap(r->sq_memory, r->sq_size);
    close(r->fd);
}

static void *ring_map(const struct ring *r, size_t size, int64_t what)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, what);
    return memory == MAP_FAILED ? NULL : memory;
}

static int ring_open(struct ring *r, unsigned entries)
{
    struct io_uring_params p;
    memset(r, 0, sizeof *r);
    r->fd = ring_setup(entries, &p);
    if (r->fd < 0)
        return errno;
    r->sq_size = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    r->cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    r->sqe_size = p.sq_entries * sizeof(struct io_uring_sqe);
    r->sq_memory = ring_map(r, r->sq_size, IORING_OFF_SQ_RING);
    r->cq_memory = ring_map(r, r->cq_size, IORING_OFF_CQ_RING);
    r->sqes = ring_map(r, r->sqe_size, IORING_OFF_SQES);
    if (!r->sq_memory || !r->cq_memory || !r->sqes) {
        int error = errno;
        ring_close(r);
        return error;
    }
    char *sq = r->sq_memory, *cq = r->cq_memory;
    r->sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
    r->sq_mask = (unsigned *)(void *)(sq + p.sq_off.ring_mask);
    r->sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
    r->cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
    r->cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
    r->cq_mask = (unsigned *)(void *)(cq + p.cq_off.ring_mask);
    r->cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
    return 0;
}

/* The next free entry, cleared. The queue is large enough by construction. */
static struct io_uring_sqe *ring_entry(struct ring *r)
{
    unsigned tail = *r->sq_tail, index = tail & *r->sq_mask;
    struct io_uring_sqe *e = &r->sqes[index];
    memset(e, 0, sizeof *e);
    r->sq_array[index] = index;
    __atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
    r->queued++;
    return e;
}

/* One operation in flight: a transfer, its continuation after a short one, and the fsync that follows it. */
struct slot {
    char *buffer;
    int64_t offset, done, started, written;
    int pending;     /* completions still to come */
    int transferred; /* result of the last transfer */
    int synced;      /* result of the last fsync */
};

#define FSYNC_BIT (UINT64_C(1) << 32)

static void queue_sync(struct ring *r, const struct transfer *t, struct slot *s, uint64_t index)
{
    struct io_uring_sqe *e = ring_entry(r);
    e->opcode = IORING_OP_FSYNC;
    e->fd = t->file->fd;
    e->user_data = index | FSYNC_BIT;
    s->pending++;
}

static void queue_transfer(struct ring *r, const struct transfer *t, struct slot *s, uint64_t index)
{
    struct io_uring_sqe *e = ring_entry(r);
    e->opcode = t->access == ACCESS_WRITE ? IORING_OP_WRITE : IORING_OP_READ;
    e->fd = t->file->fd;
    e->addr = (uint64_t)(uintptr_t)(s->buffer + s->done);
    e->len = (unsigned)(t->length - s->done);
    e->off = (uint64_t)(s->offset + s->done);
    e->user_data = index;
    s->pending++;
    if (t->sync_each) {
        e->flags = IOSQE_IO_LINK; /* the fsync starts when the write is complete, not before */
        queue_sync(r, t, s, index);
    }
}

static void start(struct ring *r, struct transfer *t, struct slot *s, uint64_t index)
{
    s->offset = order_next(&t->order);
    s->done = s->pending = 0;
    s->transferred = s->synced = 0;
    if (t->access == ACCESS_WRITE)
        data_prepare(&t->data, s->buffer, t->length, s->offset);
    else if (t->check)
        pattern_spoil(s->buffer, t->length);
    s->started = clock_ns();
    queue_transfer(r, t, s, index);
}

/* All completions of a slot are in. True when the operation is over, well or badly. */
static bool settle(struct ring *r, struct transfer *t, struct slot *s, uint64_t index, int64_t now)
{
    int result = s->transferred;
    if (result == -EINTR || result == -EAGAIN) {
        queue_transfer(r, t, s, index);
        return false;
    }
    if (result < 0 || (result == 0 && s->done < t->length)) {
        transfer_failed(t, result < 0 ? result : t->access == ACCESS_WRITE ? -EIO : s->done, s->offset);
        return true;
    }
    s->done += result;
    s->transferred = 0;
    if (s->done < t->length) {
        t->file->short_transfers++;
        queue_transfer(r, t, s, index); /* a short write broke the link: its fsync was cancelled */
        return false;
    }
    if (t->sync_each && (s->synced == -ECANCELED || s->synced == -EINTR || s->synced == -EAGAIN)) {
        s->synced = 0;
        s->transferred = 0;
        queue_sync(r, t, s, index);
        return false;
    }
    if (s->synced < 0) {
        failure_note(t->failure, "fsync", t->path, -s->synced, NULL);
        return true;
    }
    histogram_add(&t->latency, now - s->started); /* with -Y the write and its fsync, as IOR counts it */
    if (t->sync_each)
        histogram_add(&t->sync_latency, now - s->written);
    timeseries_add(&t->series, now, t->length);
    t->bytes += t->length;
    t->operations++;
    if (t->check && t->access == ACCESS_READ)
        t->mismatches += !pattern_matches(s->buffer, t->length, s->offset, t->data.owner, t->data.seed);
    return true;
}

static void uring_loop(struct transfer *t)
{
    int64_t depth = t->file->options->queue_depth;
    struct ring r;
    struct slot *slots = calloc((size_t)depth, sizeof *slots);
    uint64_t *idle = calloc((size_t)depth, sizeof *idle);
    int error = slots && idle ? ring_open(&r, (unsigned)(t->sync_each ? 2 * depth : depth)) : ENOMEM;
    if (error) {
        failure_note(t->failure, "io_uring_setup", t->path, error, NULL);
        free(slots);
        free(idle);
        return;
    }
    int64_t free_slots = 0, started = t->operations, in_flight = 0;
    bool over = false; /* the deadline */
    for (int64_t i = 0; i < depth; i++) {
        slots[i].buffer = t->buffer + i * t->length;
        idle[free_slots++] = (uint64_t)i;
    }
    for (;;) {
        while (free_slots > 0 && started < t->limit && !over && !t->failure->set && !stop_requested()) {
            uint64_t index = idle[--free_slots];
            start(&r, t, &slots[index], index);
            started++;
            in_flight++;
        }
        if (in_flight == 0)
            break;
        long submitted = syscall(SYS_io_uring_enter, r.fd, r.queued, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (submitted >= 0)
            r.queued -= (unsigned)submitted;
        else if (errno != EINTR && errno != EAGAIN && errno != EBUSY) {
            failure_note(t->failure, "io_uring_enter", t->path, errno, NULL);
            break; /* closing the ring ends what is in flight */
        }
        unsigned head = *r.cq_head, tail = __atomic_load_n(r.cq_tail, __ATOMIC_ACQUIRE);
        int64_t now = clock_ns();
        for (; head != tail; head++) {
            const struct io_uring_cqe *e = &r.cqes[head & *r.cq_mask];
            uint64_t index = e->user_data & ~FSYNC_BIT;
            struct slot *s = &slots[index];
            if (e->user_data & FSYNC_BIT) {
                s->synced = e->res;
            } else {
                s->transferred = e->res;
                s->written = now;
            }
            if (--s->pending == 0 && settle(&r, t, s, index, now)) {
                idle[free_slots++] = index;
                in_flight--;
            }
        }
        __atomic_store_n(r.cq_head, head, __ATOMIC_RELEASE);
        over = now > t->deadline;
        t->deadline_hit = t->deadline_hit || over;
    }
    ring_close(&r);
    free(slots);
    free(idle);
}

static const char *uring_check(const struct data_options *o)
{
    if (!backend_uring_available())
        return "--queue-depth: more than 1 needs io_uring, which this kernel does not offer to this process";
    if (o->transfer > INT32_MAX)
        return "-t: at most 2147483647 bytes with --queue-depth";
    return backend_posix.check(o);
}

static int64_t uring_transfer(struct file *f, enum access access, void *data, int64_t length, int64_t offset)
{
    return backend_posix.transfer(f, access, data, length, offset);
}

static int depth_buffers(const struct data_options *o)
{
    return o->queue_depth;
}

const struct backend backend_uring = {
    .name = "POSIX",
    .hidden = true,
    .check = uring_check,
    .open = fd_open,
    .transfer = uring_transfer,
    .sync = fd_sync,
    .close = fd_close,
    .loop = uring_loop,
    .buffers = depth_buffers,
};
