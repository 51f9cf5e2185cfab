/* Reads an interval and then pairs of a moment and a number of bytes, all in ns from 0; prints the series. */
#include <stdio.h>

#include "timeseries.h"

int main(void)
{
    static struct timeseries s;
    long long interval, moment, bytes;
    if (scanf("%lld", &interval) != 1)
        return 1;
    timeseries_start(&s, interval, 0);
    while (scanf("%lld %lld", &moment, &bytes) == 2)
        timeseries_add(&s, moment, bytes);
    printf("%lld %lld\n", (long long)s.interval, (long long)s.current);
    for (int i = 0; i < TIMESERIES_BINS; i++)
        if (s.operations[i])
            printf("%d %lld %lld\n", i, (long long)s.bytes[i], (long long)s.operations[i]);
    return 0;
}
