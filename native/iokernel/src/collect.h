/* Joining what all ranks recorded. Collective; every rank gets the whole. */
#ifndef IOKERNEL_COLLECT_H
#define IOKERNEL_COLLECT_H

#include "comm.h"
#include "histogram.h"
#include "timeseries.h"

struct json;

void collect_histogram(const struct comm *c, struct histogram *h);
void collect_timeseries(const struct comm *c, struct timeseries *s);

/* "timeSeries": interval, bytes and operations per bin, up to the last bin that was reached. */
void timeseries_json(const struct timeseries *s, struct json *j);

#endif
