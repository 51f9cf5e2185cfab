#include "histogram.h"

#include <math.h>
#include <string.h>

void histogram_clear(struct histogram *h)
{
    memset(h, 0, sizeof *h);
    h->min = INT64_MAX;
}

void histogram_merge(struct histogram *h, const struct histogram *other)
{
    h->count += other->count;
    h->sum += other->sum;
    if (other->min < h->min)
        h->min = other->min;
    if (other->max > h->max)
        h->max = other->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        h->bucket[i] += other->bucket[i];
}

double histogram_percentile(const struct histogram *h, double p)
{
    if (h->count == 0)
        return NAN;
    /* the k-th smallest duration, k counted from 1 (nearest-rank definition) */
    double k = ceil(p * (double)h->count);
    if (k < 1)
        k = 1;
    int64_t below = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        int64_t here = h->bucket[i];
        if ((double)(below + here) >= k) {
            double lower = (double)histogram_lower(i), upper = (double)histogram_lower(i + 1);
            double value = lower + (upper - lower) * (k - (double)below - 0.5) / (double)here;
            if (value < (double)h->min)
                value = (double)h->min;
            if (value > (double)h->max)
                value = (double)h->max;
            return value;
        }
        below += here;
    }
    return (double)h->max;
}
