/* The migrating thread, what is pending for it, and writes to the base file. */
#include "stage_parts.h"
#include "config.h"
#include "stats.h"
#include "thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NICE       5   /* less than the program; a quarter of a busy processor still moves some 500 MB a second */
#define MOST_PARTS 512 /* of one write to the base file; below IOV_MAX */

struct cv_rate cv_base_rate, cv_log_rate;

uint64_t cv_ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- The base file changes: who asks later whether somebody else changed it is told when we did. ---- */

static uint64_t change_begins(struct cv_stage *stage)
{
    uint64_t now = cv_now();

    if (stage->log)
        atomic_store(&stage->log->control->changing, now);
    return now;
}

static void change_ends(struct cv_stage *stage, uint64_t begun)
{
    if (stage->log) {
        atomic_store(&stage->log->control->touched, cv_now());
        atomic_compare_exchange_strong(&stage->log->control->changing, &begun, 0);
    }
}

int cv_base_write(struct cv_stage *stage, uint64_t address, const void *data, uint64_t size)
{
    uint64_t begun = change_begins(stage), from = cv_ticks();
    int      bad   = cv_write_all(stage->base, data, size, (off_t)address), error = errno;

    if (!bad)
        cv_rate_note(&cv_base_rate, size, cv_ticks() - from);
    change_ends(stage, begun);
    errno = error;
    return bad;
}

int cv_base_resize(struct cv_stage *stage, uint64_t size)
{
    uint64_t begun = change_begins(stage);
    int      bad   = ftruncate(stage->base, (off_t)size), error = errno;

    change_ends(stage, begun);
    errno = error;
    return bad;
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

void cv_stage_hold(const char *path, bool hold)
{
    pthread_mutex_lock(&cv_stages_lock);
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next) {
        if (strcmp(stage->path, path) != 0)
            continue;
        pthread_mutex_lock(&stage->lock);
        stage->holds = hold;
        pthread_cond_signal(&stage->work);
        pthread_mutex_unlock(&stage->lock);
    }
    pthread_mutex_unlock(&cv_stages_lock);
}

int cv_drain(struct cv_stage *stage, bool force)
{
    int error = 0;

    if (!cv_stage_is_mine(stage))
        return 0;
    pthread_mutex_lock(&stage->lock);
    if (!stage->log) {
        error = cv_held_to_base(stage);
    } else if (stage->count) {
        uint64_t from = cv_ticks();
        stage->error  = 0; /* once more: room may have been made */
        if (force)
            cv_force(stage);
        pthread_cond_signal(&stage->work);
        while (stage->count && cv_may_go(stage, cv_pending_at(stage, 0)) && !stage->error)
            cv_await_progress(stage);
        CV_COUNT(drain_ns, cv_ticks() - from);
        error = stage->error;
    }
    pthread_mutex_unlock(&stage->lock);
    errno = error;
    return error ? -1 : 0;
}

/* ---- The thread. ---- */

/* Takes as many records as make one write: the first ones, while each goes on where the last ended. */
static size_t gather(struct cv_stage *stage, struct iovec parts[MOST_PARTS], struct cv_pending *first, uint64_t *bytes)
{
    size_t taken = 0;

    *first = *cv_pending_at(stage, 0);
    *bytes = 0;
    if (first->kind == CV_RECORD_RESIZE)
        return 1;
    for (; taken < stage->count && taken < MOST_PARTS; taken++) {
        struct cv_pending *p = cv_pending_at(stage, taken);
        if (p->kind == CV_RECORD_RESIZE || !cv_may_go(stage, p) || p->address != first->address + *bytes ||
            (taken && *bytes + p->size > cv_config.fusion))
            break;
        const char *data = cv_pending_data(p);
        if (!data)
            break;
        parts[taken] = (struct iovec){(void *)(uintptr_t)data, p->size};
        *bytes += p->size;
    }
    return taken;
}

static int write_parts(int base, struct iovec *parts, size_t count, uint64_t at)
{
    while (count > 0) {
        ssize_t wrote = pwritev(base, parts, (int)count, (off_t)at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            if (wrote == 0)
                errno = ENOSPC;
            return -1;
        }
        at += (uint64_t)wrote;
        for (; count > 0 && (size_t)wrote >= parts->iov_len; parts++, count--)
            wrote -= (ssize_t)parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + wrote;
            parts->iov_len -= (size_t)wrote;
        }
    }
    return 0;
}

static void migrate_some(struct cv_stage *stage)
{
    struct iovec      parts[MOST_PARTS];
    struct cv_pending first;
    uint64_t          bytes, sequence = 0;
    size_t            taken = gather(stage, parts, &first, &bytes);

    if (taken)
        sequence = cv_pending_at(stage, taken - 1)->place.sequence;
    pthread_mutex_unlock(&stage->lock);
    int      error = taken ? 0 : errno ? errno : ENOMEM;
    uint64_t begun = change_begins(stage), from = cv_ticks();
    if (taken && first.kind == CV_RECORD_RESIZE)
        error = ftruncate(stage->base, (off_t)first.address) ? errno : 0;
    else if (taken)
        error = write_parts(stage->base, parts, taken, first.address) ? errno : 0;
    uint64_t spent = cv_ticks() - from;
    change_ends(stage, begun);
    if (!error) {
        cv_rate_note(&cv_base_rate, bytes, spent);
        CV_COUNT(migrated_bytes, bytes);
        CV_COUNT(migrated_writes, first.kind != CV_RECORD_RESIZE);
        CV_COUNT(migrated_ns, spent);
    }
    pthread_mutex_lock(&stage->lock);
    if (error) {
        stage->error = error;
        if (stage->emptied)
            atomic_fetch_or(stage->emptied, CV_STAGE_FAILED);
        atomic_store(&stage->log->control->failed, (uint64_t)error);
        CV_COUNT(migration_errors, 1);
    } else {
        while (stage->summing && stage->summing <= sequence) /* its place may be used again from then on */
            pthread_cond_wait(&stage->progress, &stage->lock);
        cv_log_done(stage->log, sequence);
        cv_pending_taken(stage, taken);
        if (stage->emptied && !stage->count)
            atomic_store(stage->emptied, stage->call);
    }
    pthread_cond_broadcast(&stage->progress);
}

void *cv_migrate(void *argument)
{
    struct cv_stage *stage = argument;

    cv_thread_after_others(NICE);
    pthread_mutex_lock(&stage->lock);
    while (!stage->stop) {
        bool held = stage->holds && !stage->wanted_by;
        if (stage->count && !held && !stage->error && cv_may_go(stage, cv_pending_at(stage, 0)))
            migrate_some(stage);
        else
            pthread_cond_wait(&stage->work, &stage->lock);
    }
    bool leaves = stage->leaves;
    pthread_mutex_unlock(&stage->lock);
    if (stage->sums_late)
        pthread_join(stage->summer, NULL);
    if (leaves) {
        cv_log_free(stage->log);
        cv_stage_free(stage);
        cv_log_left();
    }
    return NULL;
}
