/* The caller's side of writing: HDF5's thread puts what it writes into the log and goes on. */
#include "config.h"
#include "reasons.h"
#include "stage_parts.h"
#include "stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (64 << 10) /* bytes; smaller writes gain from the log whatever the bandwidths */
#define PROBE 64         /* large direct writes after which one is staged, to see how fast that is now */

/* Keeps a record in memory: so little has been written that a log is not worth it yet. */
static int hold(struct cv_stage *stage, struct cv_pending p, const void *data)
{
    struct cv_pending *newest = stage->count ? cv_pending_at(stage, stage->count - 1) : NULL;
    int                error  = 0;

    /* The same once more: so does HDF5 with the superblock. There is no thread yet that looks at what is held. */
    if (newest && newest->held && newest->kind == p.kind && newest->address == p.address && newest->size == p.size) {
        memcpy(newest->held, data, p.size);
        return 0;
    }
    if (p.size) {
        p.held = malloc(p.size);
        if (!p.held) {
            errno = ENOMEM;
            return -1;
        }
        memcpy(p.held, data, p.size);
    }
    pthread_mutex_lock(&stage->lock);
    error = cv_pending_add(stage, &p);
    if (!error)
        stage->held += p.size;
    pthread_mutex_unlock(&stage->lock);
    if (error) {
        free(p.held);
        errno = error;
        return -1;
    }
    return 0;
}

/* Waits for progress of what is pending, so that there is room again. Under the lock. Returns whether there was
   something to wait for. */
static bool wait_for_room(struct cv_stage *stage)
{
    if (!stage->count || stage->error)
        return false;
    if (!cv_may_go(stage, cv_pending_at(stage, 0)))
        cv_force(stage); /* all of the room is taken by what waits for a point */
    cv_await_progress(stage);
    return true;
}

/* Puts a record that the log holds into the thread's queue. */
static int enqueue(struct cv_stage *stage, const struct cv_pending *p)
{
    int error;

    pthread_mutex_lock(&stage->lock);
    while ((error = cv_pending_add(stage, p)) && wait_for_room(stage)) /* without memory */
        ;
    if (!error) {
        cv_point_count(stage, p);
        pthread_cond_signal(&stage->work);
        stage->appended = cv_ticks();
        if (cv_place_unsummed(stage->log, p->size) && !stage->resting)
            pthread_cond_signal(&stage->sums);
    }
    pthread_mutex_unlock(&stage->lock);
    errno = error;
    return error ? -1 : 0;
}

/* Appends a record, waiting for room where the log is full. 0; -1 with errno for a migration that failed; 1 where
   the node-local storage does not take it. */
static int append(struct cv_stage *stage, struct cv_pending p, const void *data)
{
    for (;;) {
        pthread_mutex_lock(&stage->lock);
        while (stage->count >= CV_MOST_PENDING && wait_for_room(stage))
            ;
        int error = stage->error;
        pthread_mutex_unlock(&stage->lock);
        if (error) {
            errno = error;
            return -1;
        }
        uint64_t from = cv_ticks();
        if (!cv_log_append(stage->log, p.kind, p.address, data, p.size, &p.place)) {
            cv_rate_note(&cv_log_rate, p.size, cv_ticks() - from);
            return enqueue(stage, &p);
        }
        if (errno != EAGAIN)
            return 1;
        pthread_mutex_lock(&stage->lock);
        bool waited = wait_for_room(stage);
        error       = stage->error;
        pthread_mutex_unlock(&stage->lock);
        CV_COUNT(backpressure_ns, cv_ticks() - from);
        if (!waited && !error)
            return 1;
    }
}

/* The node-local storage refused: for a while the file is written directly, after all that is pending. */
static int pause_staging(struct cv_stage *stage)
{
    if (cv_drain(stage, true))
        return -1;
    stage->paused_to = cv_ticks() + CV_PAUSE;
    return 0;
}

bool cv_base_is_fast(void)
{
    uint64_t base = cv_rate(&cv_base_rate), log = cv_rate(&cv_log_rate);

    return cv_config.adaptive && base && log && base >= log / 10 * 6;
}

/* Whether this large write goes direct; now and then one does not, to see how fast the log is by now. */
static bool go_direct(struct cv_stage *stage)
{
    return cv_base_is_fast() && ++stage->direct_run % PROBE != 0;
}

/* Waits until nothing in the range is pending; false where that could take until the next point, or failed. */
static bool nothing_pending(struct cv_stage *stage, uint64_t address, uint64_t size)
{
    bool waits = true;

    pthread_mutex_lock(&stage->lock);
    while (cv_overlapping(stage, address, size) >= 0 &&
           (waits = !stage->error && cv_may_go(stage, cv_pending_at(stage, 0))))
        cv_await_progress(stage);
    pthread_mutex_unlock(&stage->lock);
    return waits;
}

/* 0 where the file has a log now or what is written may be held; 1 where it goes direct; -1 with errno. */
static int ready(struct cv_stage *stage, bool raw, uint64_t size)
{
    if (stage->off)
        return 1;
    if (stage->log)
        return 0;
    if (cv_ticks() < stage->paused_to)
        return 1;
    stage->raw += raw ? size : 0;
    if (!stage->wanted && stage->raw < CV_WORTH_STAGING && stage->held + size < CV_WORTH_STAGING)
        return 0;
    return cv_stage_begin(stage);
}

int cv_stage_write(struct cv_stage *stage, bool raw, uint64_t address, const void *data, uint64_t size)
{
    bool              safe = raw && cv_point_is_safe(stage);
    const char       *from = data;
    struct cv_pending p    = {.kind = safe ? CV_RECORD_SAFE : CV_RECORD_WRITE, .raw = raw, .address = address,
                              .size = size};

    if (!size)
        return 0;
    int way = ready(stage, raw, size);
    if (way)
        return way < 0 ? -1 : cv_base_write(stage, address, data, size);
    if (!stage->log)
        return hold(stage, p, data);
    if (size >= LARGE && (safe || !cv_has_points(stage)) && go_direct(stage) &&
        nothing_pending(stage, address, size)) {
        CV_COUNT(direct_fast_base, 1);
        cv_because(stage->path, cv_not_staged, cv_base_fast, false);
        CV_COUNT(direct_bytes, size);
        pthread_mutex_lock(&stage->lock);
        cv_point_count_data(stage, size); /* safe, but the metadata do not tell of them yet */
        pthread_mutex_unlock(&stage->lock);
        return cv_base_write(stage, address, data, size);
    }
    uint64_t begun = cv_ticks();
    if (begun < stage->paused_to) {
        CV_COUNT(direct_full, 1);
        CV_COUNT(direct_bytes, size);
        return cv_base_write(stage, address, data, size);
    }
    for (uint64_t done = 0; done < size; done += p.size) {
        p.address = address + done;
        p.size    = size - done < CV_RECORD_DATA ? size - done : CV_RECORD_DATA;
        int bad   = append(stage, p, from + done);
        if (bad > 0) {
            CV_COUNT(direct_full, 1);
            CV_COUNT(direct_bytes, size - done);
            cv_because(stage->path, cv_not_staged, cv_local_full, false);
            return pause_staging(stage) ? -1 : cv_base_write(stage, p.address, from + done, size - done);
        }
        if (bad)
            return -1;
    }
    CV_COUNT(staged_bytes, size);
    CV_COUNT(staged_writes, 1);
    CV_COUNT(staged_ns, cv_ticks() - begun);
    return 0;
}

int cv_stage_resize(struct cv_stage *stage, uint64_t size)
{
    struct cv_pending p   = {.kind = CV_RECORD_RESIZE, .address = size};
    int               way = ready(stage, false, 0);

    if (way < 0)
        return -1;
    if (!way && !stage->log)
        return hold(stage, p, NULL);
    if (!way && cv_ticks() >= stage->paused_to) {
        int bad = append(stage, p, NULL);
        if (bad <= 0)
            return bad;
        if (pause_staging(stage))
            return -1;
    }
    return cv_base_resize(stage, size);
}
