#include "timeseries.h"

#include <string.h>

void timeseries_start(struct timeseries *s, int64_t interval, int64_t start)
{
    memset(s, 0, sizeof *s);
    s->interval = interval;
    s->edge = start + interval;
}

void timeseries_coarsen(struct timeseries *s)
{
    for (int64_t i = 0; i < TIMESERIES_BINS; i++) {
        int64_t bytes = s->bytes[i], operations = s->operations[i];
        s->bytes[i] = s->operations[i] = 0;
        s->bytes[i / 2] += bytes;
        s->operations[i / 2] += operations;
    }
    /* an even bin becomes the first half of its new bin, which ends one old interval later */
    if (s->current % 2 == 0)
        s->edge += s->interval;
    s->current /= 2;
    s->interval *= 2;
}

void timeseries_advance(struct timeseries *s, int64_t now)
{
    for (;;) {
        int64_t steps = (now - s->edge) / s->interval + 1;
        if (s->current + steps < TIMESERIES_BINS) {
            s->current += steps;
            s->edge += steps * s->interval;
            return;
        }
        timeseries_coarsen(s);
        if (now < s->edge)
            return;
    }
}
