/* What is pending for the base files, and writing to them: what all files of the stage stand on. */
#include "stage_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct cv_stage *cv_stages;
pthread_mutex_t  cv_stages_lock = PTHREAD_MUTEX_INITIALIZER;
struct cv_rate cv_base_rate, cv_log_rate;

bool cv_stage_is_mine(const struct cv_stage *stage)
{
    return stage->owner == getpid();
}

void cv_stage_free(struct cv_stage *stage)
{
    for (size_t i = 0; i < stage->count; i++)
        free(cv_pending_at(stage, i)->held);
    free(stage->ring);
    free(stage);
}

/* ---- The base file changes: who asks later whether somebody else changed it is told when we did. ---- */

uint64_t cv_change_begins(struct cv_stage *stage)
{
    uint64_t now = cv_now();

    if (stage->log)
        cv_control_set(stage->log, &stage->log->control->changing, now);
    return now;
}

void cv_change_ends(struct cv_stage *stage, uint64_t begun)
{
    if (stage->log) {
        cv_control_set(stage->log, &stage->log->control->touched, cv_now());
        uint64_t seen = begun;
        atomic_compare_exchange_strong(&stage->log->control->changing, &begun, 0);
        atomic_compare_exchange_strong(&stage->log->page->changing, &seen, 0);
    }
}

int cv_base_write(struct cv_stage *stage, uint64_t address, const void *data, uint64_t size)
{
    uint64_t begun = cv_change_begins(stage), from = cv_ticks();
    int      bad   = cv_write_all(stage->base, data, size, (off_t)address), error = errno;

    if (!bad)
        cv_rate_note(&cv_base_rate, size, cv_ticks() - from);
    cv_change_ends(stage, begun);
    errno = error;
    return bad;
}

int cv_base_resize(struct cv_stage *stage, uint64_t size)
{
    uint64_t begun = cv_change_begins(stage);
    int      bad   = ftruncate(stage->base, (off_t)size), error = errno;

    cv_change_ends(stage, begun);
    errno = error;
    return bad;
}

/* ---- What is pending. ---- */

void cv_pending_taken(struct cv_stage *stage, size_t taken)
{
    stage->first = (stage->first + taken) % stage->room;
    stage->count -= taken;
    stage->summed = stage->summed > taken ? stage->summed - taken : 0;
    if (!stage->count)
        stage->low = UINT64_MAX, stage->high = 0;
}

int cv_pending_add(struct cv_stage *stage, const struct cv_pending *p)
{
    if (stage->count == stage->room) {
        size_t             room = stage->room ? 2 * stage->room : 64;
        struct cv_pending *ring = malloc(room * sizeof *ring);
        if (!ring)
            return ENOMEM;
        for (size_t i = 0; i < stage->count; i++)
            ring[i] = *cv_pending_at(stage, i);
        free(stage->ring);
        stage->ring = ring, stage->room = room, stage->first = 0;
    }
    *cv_pending_at(stage, stage->count++) = *p;
    uint64_t end = cv_pending_end(p);
    stage->low   = p->address < stage->low ? p->address : stage->low;
    stage->high  = end > stage->high ? end : stage->high;
    return 0;
}

long cv_overlapping(const struct cv_stage *stage, uint64_t address, uint64_t size)
{
    if (address >= stage->high || address + size <= stage->low)
        return -1;
    for (size_t i = stage->count; i-- > 0;) {
        const struct cv_pending *p = cv_pending_at(stage, i);
        if (p->address < address + size && address < cv_pending_end(p))
            return (long)i;
    }
    return -1;
}

void cv_await_progress(struct cv_stage *stage)
{
    stage->wanted_by++;
    if (stage->holds)
        pthread_cond_signal(&stage->work);
    pthread_cond_wait(&stage->progress, &stage->lock);
    stage->wanted_by--;
}

int cv_held_to_base(struct cv_stage *stage)
{
    while (!stage->log && stage->count) {
        struct cv_pending *p = cv_pending_at(stage, 0);
        if (p->kind == CV_RECORD_RESIZE ? cv_base_resize(stage, p->address)
                                        : cv_base_write(stage, p->address, p->held, p->size))
            return errno;
        stage->held -= p->size;
        free(p->held);
        cv_pending_taken(stage, 1);
    }
    return 0;
}
