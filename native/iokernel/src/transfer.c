#include "transfer.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "comm.h"
#include "pattern.h"

void transfer_failed(struct transfer *t, int64_t moved, int64_t offset)
{
    const char *operation = t->access == ACCESS_WRITE ? "write" : "read";
    const char *problem = t->file->problem;
    if (moved >= 0)
        failure_note(t->failure, operation, t->path, 0, "unexpected end of file at byte %lld",
                     (long long)(offset + moved));
    else
        failure_note(t->failure, operation, t->path, (int)-moved, "%s at byte %lld",
                     problem[0] ? problem : strerror((int)-moved), (long long)offset);
}

void transfer_loop(struct transfer *t)
{
    const struct backend *backend = t->backend;
    const bool fill = t->pattern && t->access == ACCESS_WRITE, check = t->pattern && t->access == ACCESS_READ;
    int64_t before = clock_ns();
    while (t->operations < t->limit && !stop_requested()) {
        int64_t offset = order_next(&t->order);
        if (t->pattern) {
            if (fill)
                pattern_fill(t->buffer, t->length, offset, t->owner, t->seed);
            else
                pattern_spoil(t->buffer, t->length);
            before = clock_ns(); /* preparing data is no part of the operation */
        }
        int64_t moved = backend->transfer(t->file, t->access, t->buffer, t->length, offset);
        int64_t now = clock_ns();
        if (moved != t->length) {
            transfer_failed(t, moved, offset);
            if (!t->lockstep)
                return;
        } else {
            timeseries_add(&t->series, now, t->length);
            t->bytes += t->length;
        }
        t->operations++;
        int64_t started = before;
        before = now;
        if (t->sync_each) {
            int error = backend->sync(t->file);
            before = clock_ns();
            if (error) {
                failure_note(t->failure, "fsync", t->path, error, NULL);
                if (!t->lockstep)
                    return;
            }
            histogram_add(&t->sync_latency, before - now);
        }
        if (moved == t->length) /* with -Y an operation is the write and its fsync, as IOR counts it */
            histogram_add(&t->latency, before - started);
        if (check && moved == t->length) {
            t->mismatches += !pattern_matches(t->buffer, t->length, offset, t->owner, t->seed);
            before = clock_ns();
        }
        if (t->deadline != INT64_MAX) {
            int64_t over = before > t->deadline;
            if (t->collective)
                comm_bcast(t->file->comm, &over, sizeof over, 0);
            if (over) {
                t->deadline_hit = true;
                return;
            }
        }
    }
}
