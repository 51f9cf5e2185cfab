/*
 * A histogram of durations.
 *
 * Unit: nanoseconds. Buckets are log-linear: one per nanosecond below 32 ns,
 * then 32 per power of two up to 2^63 ns, so a bucket is at most 1/32 (3.2 %)
 * of its lower bound wide. Count, sum, minimum and maximum are exact;
 * percentiles are interpolated linearly inside a bucket and clipped to the
 * exact minimum and maximum, so they are off by at most 1/32 of themselves.
 */
#ifndef IOKERNEL_HISTOGRAM_H
#define IOKERNEL_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS (59 * 32)

struct histogram {
    int64_t count;
    int64_t sum; /* ns */
    int64_t min; /* ns; INT64_MAX while empty */
    int64_t max; /* ns; 0 while empty */
    int64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *h);

/* Adds every duration of other to h. */
void histogram_merge(struct histogram *h, const struct histogram *other);

/* The duration, in ns, that a share p (0..1) of all durations does not exceed; NaN while empty. */
double histogram_percentile(const struct histogram *h, double p);

/* The bucket of a duration, found from its leading bits. */
static inline unsigned histogram_index(uint64_t ns)
{
    if (ns < 32)
        return (unsigned)ns;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(ns);
    return ((exponent - 4) << 5) + ((unsigned)(ns >> (exponent - 5)) & 31u);
}

/* The smallest duration, in ns, that falls into a bucket; bucket i ends where i + 1 begins. */
static inline uint64_t histogram_lower(unsigned index)
{
    if (index < 32)
        return index;
    return (uint64_t)(32u + (index & 31u)) << ((index >> 5) - 1);
}

static inline void histogram_add(struct histogram *h, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    h->count++;
    h->sum += ns;
    if (ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
    h->bucket[histogram_index((uint64_t)ns)]++;
}

#endif
