/* The thread that makes the checksums of large data, so that the program does not wait for them. */
#include "stage_parts.h"

/* Finds the first record without its checksum. Under the lock. */
static const struct cv_pending *next(struct cv_stage *stage)
{
    for (; stage->summed < stage->count; stage->summed++) {
        const struct cv_pending *p = cv_pending_at(stage, stage->summed);
        if (p->kind != CV_RECORD_RESIZE && cv_place_unsummed(stage->log, p->size) && cv_segment_map(p->place.segment))
            return p;
    }
    return NULL;
}

void *cv_make_sums(void *argument)
{
    struct cv_stage *stage = argument;

    pthread_mutex_lock(&stage->lock);
    for (;;) {
        const struct cv_pending *p = next(stage);
        if (p) {
            struct cv_place place = p->place;
            uint64_t        size  = p->size;
            stage->summed++;
            stage->summing = place.sequence;
            pthread_mutex_unlock(&stage->lock);
            cv_log_sum(&place, size);
            pthread_mutex_lock(&stage->lock);
            stage->summing = 0;
            pthread_cond_broadcast(&stage->progress);
        } else if (stage->stop) {
            break;
        } else {
            pthread_cond_wait(&stage->sums, &stage->lock);
        }
    }
    pthread_mutex_unlock(&stage->lock);
    return NULL;
}
