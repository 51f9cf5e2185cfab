/* The migrating thread, and waiting for it. */
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
#define LOOKS      5000000 /* ns */
#define MOST_PARTS 512 /* of one write to the base file; below IOV_MAX */

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
    uint64_t begun = cv_change_begins(stage), from = cv_ticks();
    if (taken && first.kind == CV_RECORD_RESIZE)
        error = ftruncate(stage->base, (off_t)first.address) ? errno : 0;
    else if (taken)
        error = write_parts(stage->base, parts, taken, first.address) ? errno : 0;
    uint64_t spent = cv_ticks() - from;
    cv_change_ends(stage, begun);
    pthread_mutex_lock(&stage->lock);
    for (size_t i = 0; i < taken; i++) /* a log that was cut: also where the kernel found nothing at its address */
        if (first.kind != CV_RECORD_RESIZE && !cv_pending_data(cv_pending_at(stage, i)))
            error = errno;
    if (!error) {
        cv_rate_note(&cv_base_rate, bytes, spent);
        CV_COUNT(migrated_bytes, bytes);
        CV_COUNT(migrated_writes, first.kind != CV_RECORD_RESIZE);
        CV_COUNT(migrated_ns, spent);
    }
    if (error) {
        stage->error = error;
        if (stage->emptied)
            atomic_fetch_or(stage->emptied, CV_STAGE_FAILED);
        cv_control_set(stage->log, &stage->log->control->failed, (uint64_t)error);
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

/* Whether the program asked that nothing is migrated now, and nobody waits for it. */
static bool is_held(const struct cv_stage *stage)
{
    if (!stage->holds || stage->wanted_by)
        return false;
    return !stage->emptied || atomic_load(stage->emptied + CV_STAGE_ASKED) <=
                                  (atomic_load(stage->emptied + CV_STAGE_THERE) & ~CV_STAGE_FAILED);
}

/* Other processes cannot wake this one's thread: while it holds something back that they may want, it looks. */
static void wait_for_work(struct cv_stage *stage)
{
    struct timespec until;

    if (!stage->count || !stage->holds || !stage->emptied) {
        pthread_cond_wait(&stage->work, &stage->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOKS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&stage->work, &stage->lock, &until);
}

void *cv_migrate(void *argument)
{
    struct cv_stage *stage = argument;

    cv_thread_after_others(NICE);
    pthread_mutex_lock(&stage->lock);
    while (!stage->stop) {
        if (stage->count && !is_held(stage) && !stage->error && cv_may_go(stage, cv_pending_at(stage, 0)))
            migrate_some(stage);
        else
            wait_for_work(stage);
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
