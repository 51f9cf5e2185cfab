#include "order.h"

#include <stdlib.h>
#include <string.h>

static void common(struct order *o, const struct order_geometry *g)
{
    memset(o, 0, sizeof *o);
    o->transfer = g->transfer;
    o->segments = g->segments;
    o->per_segment = g->block / g->transfer;
    o->segment_stride = g->file_per_process ? g->block : g->block * g->tasks;
}

void order_sequential(struct order *o, const struct order_geometry *g, int task)
{
    common(o, g);
    o->first = g->file_per_process ? 0 : g->block * task;
    o->base = o->first;
}

/*
 * The generator is rand() of the C library, seeded by srandom(): IOR mixes the
 * two names, which share one state in glibc, and the same calls in the same
 * sequence give the same order for a seed.
 */
bool order_random(struct order *o, const struct order_geometry *g, int task, unsigned seed)
{
    common(o, g);
    int64_t segment = g->file_per_process ? g->block : g->block * g->tasks;
    srandom(seed);
    if (!g->file_per_process) {
        o->per_segment = 0;
        for (int64_t at = 0; at < segment; at += g->transfer)
            o->per_segment += rand() % g->tasks == task;
        srandom(seed); /* the second pass must draw the same numbers */
    }
    size_t count = o->per_segment ? (size_t)o->per_segment : 1;
    o->shuffled = malloc(count * sizeof *o->shuffled);
    if (!o->shuffled)
        return false;
    int64_t n = 0;
    for (int64_t at = 0; at < segment; at += g->transfer)
        if (g->file_per_process || rand() % g->tasks == task)
            o->shuffled[n++] = at;
    for (int64_t i = 0; i < n; i++) {
        int64_t other = rand() % n;
        int64_t offset = o->shuffled[other];
        o->shuffled[other] = o->shuffled[i];
        o->shuffled[i] = offset;
    }
    return true;
}

void order_free(struct order *o)
{
    free(o->shuffled);
    o->shuffled = NULL;
}
