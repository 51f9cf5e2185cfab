/* Points at which the base file is whole. */
#include "config.h"
#include "stage_parts.h"
#include "stats.h"

#include <errno.h>

_Atomic uint64_t cv_changes = 1, cv_unflushed, cv_waiting;

static atomic_bool never_safe;

void cv_never_safe(void)
{
    atomic_store(&never_safe, true);
}

bool cv_point_is_safe(const struct cv_stage *stage)
{
    return cv_has_points(stage) && stage->changes == atomic_load(&cv_changes) && !atomic_load(&never_safe);
}

bool cv_may_go(const struct cv_stage *stage, const struct cv_pending *p)
{
    return stage->shared || p->kind == CV_RECORD_SAFE || p->place.sequence <= atomic_load(&stage->log->control->whole);
}

void cv_point_count_data(struct cv_stage *stage, uint64_t size)
{
    stage->unflushed += size;
    atomic_fetch_add(&cv_unflushed, size);
}

void cv_point_count(struct cv_stage *stage, const struct cv_pending *p)
{
    struct cv_control *control = stage->log->control;

    if (stage->shared)
        return;
    if (!cv_config.checkpoint) { /* every record is as good as plain HDF5's write */
        cv_control_set(stage->log, &control->whole, p->place.sequence);
        return;
    }
    if (p->raw)
        cv_point_count_data(stage, p->size);
    if (p->kind == CV_RECORD_SAFE && !stage->waiting)
        return;
    uint64_t size = sizeof(struct cv_record) + p->size; /* safe data wait behind what is not */
    stage->waiting += size;
    atomic_fetch_add(&cv_waiting, size);
    /* What waits may begin at the end of a segment, and that segment is taken as long as any of it waits. */
    uint64_t limit = stage->log->limit < stage->store->limit ? stage->log->limit : stage->store->limit;
    uint64_t room  = limit > CV_SEGMENT_SIZE ? limit - CV_SEGMENT_SIZE : 0;
    if (stage->waiting > room / 2 || stage->count > CV_MOST_PENDING / 2)
        stage->pressed = true;
}

static void nothing_waits(struct cv_stage *stage)
{
    atomic_fetch_sub(&cv_unflushed, stage->unflushed);
    atomic_fetch_sub(&cv_waiting, stage->waiting);
    stage->unflushed = stage->waiting = 0;
    stage->pressed = false;
}

void cv_point_reached(struct cv_stage *stage)
{
    stage->changes  = atomic_load(&cv_changes);
    stage->precious = true;
    stage->is_noted = false;
    if (stage->log) {
        cv_control_set(stage->log, &stage->log->control->whole, atomic_load(&stage->log->control->appended));
        cv_control_set(stage->log, &stage->log->control->forced, 0);
        pthread_cond_signal(&stage->work);
    }
    nothing_waits(stage);
}

void cv_force(struct cv_stage *stage)
{
    struct cv_control *control  = stage->log->control;
    uint64_t           appended = atomic_load(&control->appended);

    if (!stage->shared && atomic_load(&control->whole) < appended) {
        cv_control_set(stage->log, &control->forced, 1);
        cv_control_set(stage->log, &control->whole, appended);
        CV_COUNT(forced, 1);
        nothing_waits(stage);
    }
    pthread_cond_signal(&stage->work);
}

void cv_stage_noted(struct cv_stage *stage)
{
    stage->is_noted = true;
}

void cv_stages_retry(void)
{
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next) {
        pthread_mutex_lock(&stage->lock);
        stage->is_noted = false;
        if (stage->error) {
            stage->error = 0;
            pthread_cond_signal(&stage->work);
        }
        pthread_mutex_unlock(&stage->lock);
    }
}

bool cv_stages_any(void)
{
    for (const struct cv_stage *stage = cv_stages; stage; stage = stage->next)
        if (!stage->off && !stage->shared)
            return true;
    return false;
}

bool cv_stages_pending(void)
{
    bool pending = false;

    for (struct cv_stage *stage = cv_stages; stage && !pending; stage = stage->next) {
        pthread_mutex_lock(&stage->lock);
        pending = stage->count && !stage->shared;
        pthread_mutex_unlock(&stage->lock);
    }
    return pending;
}

bool cv_stages_unchanged(void)
{
    if (atomic_load(&never_safe))
        return true; /* a point would change nothing */
    for (const struct cv_stage *stage = cv_stages; stage; stage = stage->next)
        if (!stage->off && !stage->shared && !cv_point_is_safe(stage))
            return false;
    return true;
}

bool cv_stages_pressed(void)
{
    for (const struct cv_stage *stage = cv_stages; stage; stage = stage->next)
        if (stage->pressed)
            return true;
    return false;
}

void cv_stages_want_logs(void)
{
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next)
        stage->wanted = true;
}
