/* Adds the numbers on standard input to a histogram and prints what it says about them. */
#include <stdio.h>

#include "histogram.h"

int main(void)
{
    static struct histogram h, half;
    long long value;
    histogram_clear(&h);
    histogram_clear(&half);
    for (int i = 0; scanf("%lld", &value) == 1; i++)
        histogram_add(i % 2 ? &half : &h, value); /* in two parts, to be merged */
    histogram_merge(&h, &half);
    printf("%lld %lld %lld %lld", (long long)h.count, (long long)h.sum, (long long)h.min, (long long)h.max);
    printf(" %.17g %.17g %.17g %.17g %.17g\n", histogram_percentile(&h, 0.0), histogram_percentile(&h, 0.5),
           histogram_percentile(&h, 0.9), histogram_percentile(&h, 0.99), histogram_percentile(&h, 1.0));
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        if (h.bucket[i])
            printf("%llu %llu %lld\n", (unsigned long long)histogram_lower(i),
                   (unsigned long long)histogram_lower(i + 1), (long long)h.bucket[i]);
    return 0;
}
