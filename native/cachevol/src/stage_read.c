/* Reads of a file that is written to: what is pending lies over what the base file holds. */
#include "stage_parts.h"

#include <string.h>

/* Changes `data`, which holds the range as it was before the record. */
static int overlay(const struct cv_pending *p, uint64_t address, char *data, uint64_t size)
{
    uint64_t begin = p->address > address ? p->address : address, end = cv_pending_end(p);

    end = end < address + size ? end : address + size;
    if (begin >= end)
        return 0;
    if (p->kind == CV_RECORD_RESIZE) { /* what lay behind the new end is gone */
        memset(data + (begin - address), 0, end - begin);
        return 0;
    }
    const char *from = cv_pending_data(p);
    if (!from)
        return -1;
    memcpy(data + (begin - address), from + (begin - p->address), end - begin);
    return cv_pending_data(p) ? 0 : -1;
}

/* Under the lock: a record that leaves the queue meanwhile would be missed. One that the thread is writing right
   now is still in it, so that half of it in the base file does no harm. */
static int compose(const struct cv_stage *stage, uint64_t address, char *data, uint64_t size)
{
    long newest = cv_overlapping(stage, address, size);

    if (newest < 0)
        return 0;
    const struct cv_pending *p = cv_pending_at(stage, (size_t)newest);
    if (p->kind != CV_RECORD_RESIZE && p->address <= address && address + size <= p->address + p->size)
        return overlay(p, address, data, size) ? -1 : 1;
    ssize_t got = cv_read_all(stage->base, data, size, (off_t)address);
    if (got < 0)
        return -1;
    memset(data + got, 0, size - (uint64_t)got);
    for (size_t i = 0; i <= (size_t)newest; i++)
        if (overlay(cv_pending_at(stage, i), address, data, size))
            return -1;
    return 1;
}

int cv_stage_read(struct cv_stage *stage, uint64_t address, void *data, uint64_t size)
{
    if (!stage->count || !size || !cv_stage_is_mine(stage))
        return 0; /* only this thread adds to what is pending */
    pthread_mutex_lock(&stage->lock);
    int outcome = compose(stage, address, data, size);
    pthread_mutex_unlock(&stage->lock);
    return outcome;
}
