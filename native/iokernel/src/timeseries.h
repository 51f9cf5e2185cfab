/*
 * Bytes and operations over the time of a phase.
 *
 * Bin i holds the operations that ended in [i, i+1) intervals after the start
 * of the phase (the moment the process left the barrier before open). When
 * more than TIMESERIES_BINS bins are needed, neighbours are added together and
 * the interval doubles: memory stays bounded however long a phase runs.
 */
#ifndef IOKERNEL_TIMESERIES_H
#define IOKERNEL_TIMESERIES_H

#include <stdint.h>

#define TIMESERIES_BINS 1000

struct timeseries {
    int64_t interval; /* ns */
    int64_t edge;     /* monotonic ns at which the current bin ends */
    int64_t current;  /* index of the current bin */
    int64_t bytes[TIMESERIES_BINS];
    int64_t operations[TIMESERIES_BINS];
};

void timeseries_start(struct timeseries *s, int64_t interval, int64_t start);

/* Moves to the bin that holds the moment now. */
void timeseries_advance(struct timeseries *s, int64_t now);

/* Doubles the interval once. */
void timeseries_coarsen(struct timeseries *s);

static inline void timeseries_add(struct timeseries *s, int64_t now, int64_t bytes)
{
    if (now >= s->edge)
        timeseries_advance(s, now);
    s->bytes[s->current] += bytes;
    s->operations[s->current]++;
}

#endif
