#include "collect.h"

#include "clock.h"
#include "json.h"

void collect_histogram(const struct comm *c, struct histogram *h)
{
    comm_reduce_int(c, &h->count, 1, REDUCE_SUM);
    comm_reduce_int(c, &h->sum, 1, REDUCE_SUM);
    comm_reduce_int(c, &h->min, 1, REDUCE_MIN);
    comm_reduce_int(c, &h->max, 1, REDUCE_MAX);
    if (h->count)
        comm_reduce_int(c, h->bucket, HISTOGRAM_BUCKETS, REDUCE_SUM);
}

void collect_timeseries(const struct comm *c, struct timeseries *s)
{
    /* intervals are powers of two apart: bring all ranks to the coarsest */
    int64_t interval = s->interval;
    comm_reduce_int(c, &interval, 1, REDUCE_MAX);
    while (s->interval < interval)
        timeseries_coarsen(s);
    comm_reduce_int(c, &s->current, 1, REDUCE_MAX);
    comm_reduce_int(c, s->bytes, TIMESERIES_BINS, REDUCE_SUM);
    comm_reduce_int(c, s->operations, TIMESERIES_BINS, REDUCE_SUM);
}

void timeseries_json(const struct timeseries *s, struct json *j)
{
    json_object(j, "timeSeries");
    json_double(j, "intervalSeconds", seconds(s->interval));
    json_array(j, "bytes");
    for (int64_t i = 0; i <= s->current; i++)
        json_int(j, NULL, s->bytes[i]);
    json_array_end(j);
    json_array(j, "operations");
    for (int64_t i = 0; i <= s->current; i++)
        json_int(j, NULL, s->operations[i]);
    json_array_end(j);
    json_object_end(j);
}
