/*
 * The order of offsets in which one process moves its share of a file, as IOR
 * defines it: segment after segment; inside a segment either one block after
 * its transfers in ascending order, or a shuffled list that is the same for
 * every segment.
 */
#ifndef IOKERNEL_ORDER_H
#define IOKERNEL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct order {
    int64_t transfer;       /* bytes per operation */
    int64_t per_segment;    /* operations in one segment; 0 is possible in a shuffled shared file */
    int64_t segments;
    int64_t segment_stride; /* bytes from one segment to the next */
    int64_t first;          /* offset of the first byte of segment 0 */
    int64_t *shuffled;      /* offsets inside a segment, or NULL for ascending order */
    int64_t base, segment, next; /* cursor */
};

struct order_geometry {
    int64_t transfer, block, segments;
    int tasks;
    bool file_per_process;
};

/* Ascending order for the given task. */
void order_sequential(struct order *o, const struct order_geometry *g, int task);

/*
 * IOR's shuffle for the given task. In a file per process the caller adds the
 * task to the seed; in a shared file all tasks must pass the same seed, and
 * each transfer of a segment is given to a task by chance. Returns false when
 * memory is short.
 */
bool order_random(struct order *o, const struct order_geometry *g, int task, unsigned seed);

void order_free(struct order *o);

/* Operations in one pass over all segments. */
static inline int64_t order_total(const struct order *o)
{
    return o->per_segment * o->segments;
}

/* The next offset; after the last one it starts over (wear-out may need that). */
static inline int64_t order_next(struct order *o)
{
    int64_t offset = o->base + (o->shuffled ? o->shuffled[o->next] : o->next * o->transfer);
    if (++o->next == o->per_segment) {
        o->next = 0;
        o->base += o->segment_stride;
        if (++o->segment == o->segments) {
            o->segment = 0;
            o->base = o->first;
        }
    }
    return offset;
}

#endif
