/* The thread that makes the checksums of large data, so that the program does not wait for them: not even for the
   memory, since it rests while the program goes on writing. */
#include "stage_parts.h"
#include "thread.h"

#include <time.h>

#define NICE 10                  /* less than the program */
#define REST UINT64_C(5000000)   /* ns after the last record */
#define MOST UINT64_C(100000000) /* ns that the first one waits at most */

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

/* Waits until the program has not written for a while. Under the lock. */
static void rest(struct cv_stage *stage)
{
    uint64_t latest = cv_ticks() + MOST, until;

    stage->resting = true;
    while (!stage->stop && (until = stage->appended + REST) > cv_ticks() && cv_ticks() < latest) {
        until                = until < latest ? until : latest;
        struct timespec then = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        pthread_cond_timedwait(&stage->sums, &stage->lock, &then);
    }
    stage->resting = false;
}

void *cv_make_sums(void *argument)
{
    struct cv_stage *stage = argument;
    bool             fresh = true; /* nothing was there to sum a moment ago */

    cv_thread_after_others(NICE);
    pthread_mutex_lock(&stage->lock);
    for (;;) {
        const struct cv_pending *p = next(stage);
        if (p && fresh) {
            rest(stage);
            fresh = false;
        } else if (p) {
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
            fresh = true;
            pthread_cond_wait(&stage->sums, &stage->lock);
        }
    }
    pthread_mutex_unlock(&stage->lock);
    return NULL;
}
