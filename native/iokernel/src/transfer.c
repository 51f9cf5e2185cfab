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
    const bool writes = t->access == ACCESS_WRITE, check = t->check && !writes;
    const int64_t turns = writes && t->data.mode == DATA_STAMPED && t->room > t->length ? t->room / t->length : 1;
    int64_t before = clock_ns();
    while (t->operations < t->limit && !stop_requested()) {
        int64_t offset = order_next(&t->order);
        char *buffer = t->buffer + t->operations % turns * t->length;
        if (writes)
            data_prepare(&t->data, buffer, t->length, offset);
        else if (check)
            pattern_spoil(buffer, t->length);
        if (check || (writes && t->data.mode != DATA_STAMPED && t->data.mode != DATA_CONSTANT))
            before = clock_ns(); /* preparing data is no part of the operation; a stamp costs less than a clock */
        int64_t moved = backend->transfer(t->file, t->access, buffer, t->length, offset);
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
            t->mismatches += !pattern_matches(buffer, t->length, offset, t->data.owner, t->data.seed);
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
