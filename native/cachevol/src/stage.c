/* Beginning and ending of staging for a file. */
#include "stage_parts.h"
#include "config.h"
#include "marker.h"
#include "reasons.h"
#include "superblock.h"
#include "stats.h"
#include "thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Fork: the parent's log is the parent's. Nothing is pending while it happens, and the child goes direct. ---- */

static void before_fork(void)
{
    cv_logs_fork(CV_FORK_BEGINS);
    pthread_mutex_lock(&cv_stages_lock);
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next) {
        pthread_mutex_lock(&stage->lock);
        if (!cv_stage_is_mine(stage))
            continue;
        if (!stage->log) {
            cv_held_to_base(stage);
            continue;
        }
        if (stage->count)
            cv_force(stage);
        while (stage->count && !stage->error)
            cv_await_progress(stage);
    }
}

static void after_fork_in_parent(void)
{
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next)
        pthread_mutex_unlock(&stage->lock);
    pthread_mutex_unlock(&cv_stages_lock);
    cv_logs_fork(CV_FORK_PARENT);
}

static void after_fork_in_child(void)
{
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next) {
        stage->off = true;
        stage->unflushed = stage->waiting = 0;
        stage->pressed = false;
        pthread_mutex_init(&stage->lock, NULL);
        cv_timed_condition(&stage->work);
        cv_timed_condition(&stage->sums);
        pthread_cond_init(&stage->progress, NULL);
    }
    atomic_store(&cv_unflushed, 0);
    atomic_store(&cv_waiting, 0);
    pthread_mutex_init(&cv_stages_lock, NULL);
    cv_logs_fork(CV_FORK_CHILD);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- Beginning. ---- */

struct cv_stage *cv_stage_open(struct cv_store *store, const char *path, int base, uint64_t device,
                               uint64_t inode, uint64_t size)
{
    static pthread_once_t once  = PTHREAD_ONCE_INIT;
    struct cv_stage      *stage = calloc(1, sizeof *stage);

    if (!stage)
        return NULL;
    pthread_once(&once, watch_forks);
    stage->store = store, stage->base = base, stage->device = device, stage->inode = inode;
    stage->owner    = getpid();
    stage->off      = !store;
    stage->precious = size > 0;
    stage->low      = UINT64_MAX;
    stage->changes  = atomic_load(&cv_changes);
    snprintf(stage->path, sizeof stage->path, "%s", path);
    pthread_mutex_init(&stage->lock, NULL);
    cv_timed_condition(&stage->work);
    cv_timed_condition(&stage->sums);
    pthread_cond_init(&stage->progress, NULL);
    pthread_mutex_lock(&cv_stages_lock);
    stage->next = cv_stages;
    if (cv_stages)
        cv_stages->previous = stage;
    cv_stages = stage;
    pthread_mutex_unlock(&cv_stages_lock);
    return stage;
}

struct cv_stage *cv_stage_open_shared(struct cv_store *store, const char *path, int base, uint64_t device,
                                      uint64_t inode)
{
    struct cv_stage *stage = cv_stage_open(store, path, base, device, inode, 0);

    if (stage)
        stage->shared = stage->wanted = true; /* nothing is held in memory: the other processes may wait for it */
    return stage;
}

void cv_stage_called(struct cv_stage *stage, uint64_t call, _Atomic uint64_t *emptied)
{
    pthread_mutex_lock(&stage->lock);
    stage->call    = call;
    stage->emptied = emptied;
    if (!stage->count)
        atomic_store(emptied, call);
    pthread_mutex_unlock(&stage->lock);
}

static int start_threads(struct cv_stage *stage)
{
    int error = cv_thread_start(&stage->thread, cv_migrate, stage);
    /* Without it, and where others than this node's kernel must know that data are whole, the caller sums. Nobody asks
       for sums of what is not replayed. */
    if (!error && !stage->shared && !cv_config.global && cv_boot_is_known())
        stage->sums_late = !cv_thread_start(&stage->summer, cv_make_sums, stage);
    stage->log->late = stage->sums_late || stage->shared;
    stage->running = !error;
    return error;
}

/* Whether a limit on the size of files would stop a segment: SIGXFSZ would end programs that native HDF5 does not. */
static bool files_are_limited(void)
{
    struct rlimit limit;

    return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < CV_SEGMENT_SIZE;
}

static int mark(struct cv_stage *stage, const struct cv_log *log)
{
    struct cv_marker marker = {.pid = (long)getpid()};

    snprintf(marker.host, sizeof marker.host, "%s", cv_host());
    snprintf(marker.id, sizeof marker.id, "%s", log->control->id);
    snprintf(marker.folder, sizeof marker.folder, "%s", log->folder);
    return cv_marker_write(stage->path, &marker);
}

/* The file may have a time of change that is still to come, by a clock that was ahead: who replays what follows must not
   take it for a later change. */
static void know_time(const struct cv_stage *stage, struct cv_log *log)
{
    struct stat now;
    uint64_t    changed;

    if (fstat(stage->base, &now))
        return;
    changed = (uint64_t)now.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)now.st_mtim.tv_nsec;
    if (now.st_mtim.tv_sec > 0 && changed > atomic_load(&log->control->touched))
        cv_control_set(log, &log->control->touched, changed);
}

/* Copies what is held in memory into the log. */
static int log_held(struct cv_stage *stage, struct cv_log *log)
{
    for (size_t i = 0; i < stage->count; i++) {
        struct cv_pending *p = cv_pending_at(stage, i);
        if (cv_log_append(log, p->kind, p->address, p->held, p->size, &p->place))
            return -1;
    }
    return 0;
}

int cv_stage_begin(struct cv_stage *stage)
{
    struct cv_log *log = NULL;
    const char    *why = "files may not be as large as a log (ulimit -f)";

    if (!files_are_limited()) {
        why = "the node-local storage takes no log";
        log = cv_log_create(stage->store, stage->path, stage->device, stage->inode, cv_config.write_buffer);
        if (log)
            know_time(stage, log);
    }
    bool marked = log && (stage->shared || !mark(stage, log));
    pthread_mutex_lock(&stage->lock);
    if (marked && !log_held(stage, log)) {
        stage->log = log;
        if (!start_threads(stage)) {
            for (size_t i = 0; i < stage->count; i++) {
                struct cv_pending *p = cv_pending_at(stage, i);
                free(p->held);
                p->held = NULL;
                cv_point_count(stage, p);
                CV_COUNT(staged_bytes, p->size);
                CV_COUNT(staged_writes, p->kind != CV_RECORD_RESIZE);
            }
            stage->held = 0;
            pthread_cond_signal(&stage->work);
            pthread_mutex_unlock(&stage->lock);
            CV_COUNT(files_staged, 1);
            return 0;
        }
        stage->log = NULL;
    }
    int error = cv_held_to_base(stage);
    if (marked && !error) { /* there is no room now */
        stage->paused_to = cv_ticks() + CV_PAUSE;
        CV_COUNT(direct_full, 1);
        cv_because(stage->path, cv_not_staged, cv_local_full, false);
    } else {
        stage->off = !error;
        if (!error)
            cv_because(stage->path, cv_not_staged, log ? "no marker can be laid beside it" : why, true);
    }
    pthread_mutex_unlock(&stage->lock);
    if (marked && !stage->shared)
        cv_marker_remove(stage->path, log->control->id);
    if (log) {
        cv_log_remove(log);
        cv_log_free(log);
    }
    errno = error;
    return error ? -1 : 1;
}

/* ---- Points: what flushes wrote. ---- */

bool cv_needs_log(const struct cv_stage *stage)
{
    return !stage->log && !stage->off && cv_ticks() >= stage->paused_to && stage->precious && (stage->count > 1 || (stage->mark && stage->count));
}

/* What a flush wrote to one file becomes its point. */
static int whole(struct cv_stage *stage, bool drain)
{
    int error = 0;

    stage->is_noted = false;
    if (!cv_stage_is_mine(stage))
        return 0;
    stage->precious = stage->precious || stage->mark; /* from a log, a replay takes the mark off */
    if (cv_needs_log(stage) && cv_stage_begin(stage) < 0)
        return -1;
    /* Nobody asked for a flush, and a new file with next to nothing in it is not worth a log: it goes on being held,
       since the file would be neither empty nor whole while that is written. */
    if (!stage->log && !drain && stage->count)
        return 1;
    pthread_mutex_lock(&stage->lock);
    if (!stage->log)
        error = cv_held_to_base(stage);
    if (!error)
        cv_point_reached(stage);
    pthread_mutex_unlock(&stage->lock);
    errno = error;
    return error ? -1 : drain ? cv_drain(stage, false) : 0;
}

int cv_stages_whole(bool drain)
{
    int bad = 0, error = 0;

    /* Only the calling thread, HDF5's, adds and removes stages. */
    for (struct cv_stage *stage = cv_stages; stage; stage = stage->next)
        if (stage->is_noted) {
            int one = whole(stage, drain);
            if (one < 0)
                error = errno;
            bad = one && bad >= 0 ? one : bad;
        }
    errno = error;
    return bad;
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

/* ---- Ending. ---- */

int cv_stage_opened(struct cv_stage *stage)
{
    if (stage->off || stage->log)
        return 0;
    pthread_mutex_lock(&stage->lock);
    for (size_t i = 0; i < stage->count; i++) {
        const struct cv_pending *p = cv_pending_at(stage, i);
        stage->mark = stage->mark || (p->held && cv_superblock_can_be_marked(p->held, p->size));
    }
    pthread_mutex_unlock(&stage->lock);
    if (!stage->mark || !stage->precious) /* a new file is no HDF5 file yet, and nobody else can open it */
        return 0;
    int way = cv_stage_begin(stage); /* first the log, by which a replay takes the mark off */
    if (way)
        return way < 0 ? -1 : 0;
    pthread_mutex_lock(&stage->lock);
    cv_point_reached(stage); /* but for the mark, the file is as it was */
    pthread_mutex_unlock(&stage->lock);
    return cv_drain(stage, false);
}

int cv_stage_drain(struct cv_stage *stage)
{
    return cv_drain(stage, false);
}

int cv_stage_stop(struct cv_stage *stage)
{
    if (stage->off)
        return 0;
    int bad    = cv_drain(stage, true);
    stage->off = !bad; /* what could not be written stays in the log, and is tried again */
    return bad;
}

/* Everything has been written: HDF5 closes the file. */
static int settle_all(struct cv_stage *stage)
{
    int error = 0;

    if (!cv_stage_is_mine(stage))
        return 0;
    if (cv_needs_log(stage) && cv_stage_begin(stage) < 0)
        return -1;
    pthread_mutex_lock(&stage->lock);
    if (!stage->log)
        error = cv_held_to_base(stage);
    else if (!stage->shared)
        cv_point_reached(stage);
    pthread_mutex_unlock(&stage->lock);
    errno = error;
    return error || cv_drain(stage, false) ? -1 : 0;
}

int cv_stage_close(struct cv_stage *stage, char *log, size_t room)
{
    int bad = settle_all(stage), error = errno;

    *log = '\0';
    pthread_mutex_lock(&cv_stages_lock);
    if (stage->previous)
        stage->previous->next = stage->next;
    else
        cv_stages = stage->next;
    if (stage->next)
        stage->next->previous = stage->previous;
    pthread_mutex_unlock(&cv_stages_lock);
    atomic_fetch_sub(&cv_unflushed, stage->unflushed);
    atomic_fetch_sub(&cv_waiting, stage->waiting);
    if (stage->log && cv_stage_is_mine(stage)) {
        if (bad) {
            snprintf(log, room, "%s", stage->log->control->id);
            if (stage->shared) /* now a replay is all that can bring them there */
                cv_control_set(stage->log, &stage->log->control->whole, atomic_load(&stage->log->control->appended));
        } else {
            /* A marker that stays without its log would keep everybody from opening the file. */
            if (stage->shared || cv_marker_is_gone(stage->path, stage->log->control->id))
                cv_log_remove(stage->log);
            cv_log_leaves();
            pthread_detach(stage->thread);
        }
        pthread_t thread = stage->thread;
        pthread_mutex_lock(&stage->lock);
        stage->stop   = true;
        stage->leaves = !bad;
        pthread_cond_signal(&stage->work);
        pthread_cond_signal(&stage->sums);
        pthread_mutex_unlock(&stage->lock);
        if (!bad) { /* from here on the stage is the thread's */
            errno = error;
            return 0;
        }
        pthread_join(thread, NULL);
    }
    if (stage->log)
        cv_log_free(stage->log);
    cv_stage_free(stage);
    errno = error;
    return bad;
}
