/* The timed heart of a phase: the loop over operations of one rank. */
#ifndef IOKERNEL_TRANSFER_H
#define IOKERNEL_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "failure.h"
#include "histogram.h"
#include "order.h"
#include "pattern.h"
#include "timeseries.h"

struct transfer {
    /* what to do */
    const struct backend *backend;
    struct file *file;
    const char *path;
    enum access access;
    int64_t length;         /* bytes per operation */
    int64_t limit;          /* stop after this many operations in all */
    int64_t deadline;       /* monotonic ns after which no operation starts, or INT64_MAX */
    bool collective;        /* rank 0 decides for all whether the deadline is over */
    bool lockstep;          /* every rank must make the same calls: go on after a failure */
    bool sync_each;         /* fsync after each write */
    struct data_source data; /* what writes carry */
    bool check;             /* reads: check the data */
    char *buffer;           /* backend->buffers() times length bytes, page-aligned; of one, room for more */
    int64_t room;           /* bytes of it: small writes take turns in it, so that neighbours have other data */
    struct order order;

    /* what happened */
    int64_t operations, bytes;
    int64_t mismatches;     /* operations whose data were wrong */
    bool deadline_hit;
    struct histogram latency, sync_latency;
    struct timeseries series;
    struct failure *failure;
};

/*
 * Runs until the limit, the deadline, a failure or a stop request; may be
 * called again with a new limit. One clock reading ends an operation and
 * starts the next one.
 */
void transfer_loop(struct transfer *t);

/* For loops of backends: notes a transfer that moved too little (moved >= 0) or failed (moved = -errno). */
void transfer_failed(struct transfer *t, int64_t moved, int64_t offset);

#endif
