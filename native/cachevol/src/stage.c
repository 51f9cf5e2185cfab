#include "stage.h"
#include "config.h"
#include "log.h"
#include "marker.h"
#include "rates.h"
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define WORTH_STAGING (64 << 10) /* bytes of raw data before the first log is made */
#define LARGE         (64 << 10) /* bytes; smaller writes gain from the log whatever the bandwidths */
#define MOST_PENDING  65536
#define MOST_PARTS    512 /* of one write to the base file; below IOV_MAX */
#define PAUSE         UINT64_C(1000000000) /* ns without tries after the node-local storage refused */
#define PROBE         64  /* large direct writes after which one is staged, to see how fast that is now */

struct pending {
    enum cv_record_kind kind;
    uint64_t            address, size;
    struct cv_place     place;
};

struct cv_stage {
    struct cv_store *store;
    struct cv_log   *log;
    char             path[PATH_MAX];
    int              base;
    uint64_t         device, inode;
    pid_t            owner;
    bool             off;       /* nothing is staged any more */
    bool             marked;    /* our marker lies beside the base file */
    uint64_t         raw;       /* bytes seen before staging began */
    uint64_t         paused_to; /* ticks */
    unsigned         direct_run;

    pthread_mutex_t  lock; /* over what follows */
    pthread_cond_t   work, progress;
    pthread_t        thread;
    bool             running, stop;
    int              error; /* errno of a migration that failed; no more until the next drain tries again */
    struct pending  *ring;
    size_t           first, count, room;
    uint64_t         low, high; /* addresses of all that is pending lie in [low, high) */

    struct cv_stage *next, *previous; /* all stages of the process */
};

static struct cv_stage *stages;
static pthread_mutex_t  stages_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cv_rate   base_rate, log_rate;
static _Atomic uint64_t unflushed;

uint64_t cv_ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t cv_stage_unflushed(void)
{
    return atomic_load(&unflushed);
}

void cv_stage_flushed(void)
{
    atomic_store(&unflushed, 0);
}

static struct pending *pending_at(const struct cv_stage *stage, size_t i)
{
    return &stage->ring[(stage->first + i) % stage->room];
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

static int write_base(struct cv_stage *stage, uint64_t address, const void *data, uint64_t size)
{
    uint64_t begun = change_begins(stage), from = cv_ticks();
    int      bad   = cv_write_all(stage->base, data, size, (off_t)address), error = errno;

    if (!bad)
        cv_rate_note(&base_rate, size, cv_ticks() - from);
    change_ends(stage, begun);
    errno = error;
    return bad;
}

/* ---- The migrating thread. ---- */

/* Takes as many records as make one write: the first ones, while each goes on where the last ended. */
static size_t gather(struct cv_stage *stage, struct iovec parts[MOST_PARTS], struct pending *first, uint64_t *bytes)
{
    size_t taken = 0;

    *first = *pending_at(stage, 0);
    *bytes = 0;
    if (first->kind == CV_RECORD_RESIZE)
        return 1;
    for (; taken < stage->count && taken < MOST_PARTS; taken++) {
        struct pending *p = pending_at(stage, taken);
        if (p->kind != CV_RECORD_WRITE || p->address != first->address + *bytes ||
            (taken && *bytes + p->size > cv_config.fusion))
            break;
        const char *map = cv_segment_map(p->place.segment);
        if (!map)
            break;
        parts[taken] = (struct iovec){(void *)(uintptr_t)(map + p->place.at), p->size};
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
    struct iovec   parts[MOST_PARTS];
    struct pending first;
    uint64_t       bytes, sequence = 0;
    size_t         taken = gather(stage, parts, &first, &bytes);

    if (taken)
        sequence = pending_at(stage, taken - 1)->place.sequence;
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
        cv_rate_note(&base_rate, bytes, spent);
        CV_COUNT(migrated_bytes, bytes);
        CV_COUNT(migrated_writes, first.kind == CV_RECORD_WRITE);
        CV_COUNT(migrated_ns, spent);
    }
    pthread_mutex_lock(&stage->lock);
    if (error) {
        stage->error = error;
        atomic_store(&stage->log->control->failed, (uint64_t)error);
        CV_COUNT(migration_errors, 1);
    } else {
        cv_log_done(stage->log, sequence);
        stage->first = (stage->first + taken) % stage->room;
        stage->count -= taken;
        if (!stage->count)
            stage->low = UINT64_MAX, stage->high = 0;
    }
    pthread_cond_broadcast(&stage->progress);
}

static void *migrate(void *argument)
{
    struct cv_stage *stage = argument;

    pthread_mutex_lock(&stage->lock);
    while (!stage->stop) {
        if (stage->count && !stage->error)
            migrate_some(stage);
        else
            pthread_cond_wait(&stage->work, &stage->lock);
    }
    pthread_mutex_unlock(&stage->lock);
    return NULL;
}

/* ---- Fork: the parent's log is the parent's. Nothing is pending while it happens, and the child goes direct. ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&stages_lock);
    for (struct cv_stage *stage = stages; stage; stage = stage->next) {
        pthread_mutex_lock(&stage->lock);
        while (stage->count && !stage->error && stage->owner == getpid())
            pthread_cond_wait(&stage->progress, &stage->lock);
    }
}

static void after_fork_in_parent(void)
{
    for (struct cv_stage *stage = stages; stage; stage = stage->next)
        pthread_mutex_unlock(&stage->lock);
    pthread_mutex_unlock(&stages_lock);
}

static void after_fork_in_child(void)
{
    for (struct cv_stage *stage = stages; stage; stage = stage->next) {
        stage->off = true;
        pthread_mutex_init(&stage->lock, NULL);
        pthread_cond_init(&stage->work, NULL);
        pthread_cond_init(&stage->progress, NULL);
    }
    pthread_mutex_init(&stages_lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- Beginning and ending. ---- */

struct cv_stage *cv_stage_open(struct cv_store *store, const char *path, int base, uint64_t device,
                               uint64_t inode)
{
    static pthread_once_t once  = PTHREAD_ONCE_INIT;
    struct cv_stage      *stage = calloc(1, sizeof *stage);

    if (!stage)
        return NULL;
    pthread_once(&once, watch_forks);
    stage->store = store, stage->base = base, stage->device = device, stage->inode = inode;
    stage->owner = getpid();
    stage->off   = !store;
    stage->low   = UINT64_MAX;
    snprintf(stage->path, sizeof stage->path, "%s", path);
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->work, NULL);
    pthread_cond_init(&stage->progress, NULL);
    pthread_mutex_lock(&stages_lock);
    stage->next = stages;
    if (stages)
        stages->previous = stage;
    stages = stage;
    pthread_mutex_unlock(&stages_lock);
    return stage;
}

static int start_thread(struct cv_stage *stage)
{
    sigset_t all, before;

    sigfillset(&all); /* signals are the program's own matter */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&stage->thread, NULL, migrate, stage);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    stage->running = !error;
    return error;
}

/* Whether a limit on the size of files would stop a segment: SIGXFSZ would end programs that native HDF5 does not. */
static bool files_are_limited(void)
{
    struct rlimit limit;

    return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < CV_SEGMENT_SIZE;
}

/* Makes log, marker and thread; whatever is missing, the file is written directly from then on. */
static bool begin(struct cv_stage *stage)
{
    struct cv_marker marker = {.pid = (long)getpid()};

    if (!files_are_limited())
        stage->log = cv_log_create(stage->store, stage->path, stage->device, stage->inode, cv_config.write_buffer);
    if (!stage->log) {
        stage->off = true;
        return false;
    }
    snprintf(marker.host, sizeof marker.host, "%s", cv_host());
    snprintf(marker.id, sizeof marker.id, "%s", stage->log->control->id);
    snprintf(marker.folder, sizeof marker.folder, "%s", stage->log->folder);
    stage->marked = !cv_marker_write(stage->path, &marker);
    if (!stage->marked || start_thread(stage)) {
        if (stage->marked)
            cv_marker_remove(stage->path, marker.id);
        cv_log_close(stage->log, false);
        stage->log = NULL;
        stage->off = true;
        return false;
    }
    CV_COUNT(files_staged, 1);
    return true;
}

int cv_stage_drain(struct cv_stage *stage)
{
    int error;

    if (!stage->log || stage->owner != getpid())
        return 0;
    pthread_mutex_lock(&stage->lock);
    if (stage->count) {
        uint64_t from = cv_ticks();
        stage->error  = 0; /* once more: room may have been made */
        pthread_cond_signal(&stage->work);
        while (stage->count && !stage->error)
            pthread_cond_wait(&stage->progress, &stage->lock);
        CV_COUNT(drain_ns, cv_ticks() - from);
    }
    error = stage->error;
    pthread_mutex_unlock(&stage->lock);
    errno = error;
    return error ? -1 : 0;
}

void cv_stage_stop(struct cv_stage *stage)
{
    cv_stage_drain(stage);
    stage->off = true;
}

int cv_stage_close(struct cv_stage *stage, char *log, size_t room)
{
    int bad = cv_stage_drain(stage), error = errno;

    *log = '\0';
    pthread_mutex_lock(&stages_lock);
    if (stage->previous)
        stage->previous->next = stage->next;
    else
        stages = stage->next;
    if (stage->next)
        stage->next->previous = stage->previous;
    pthread_mutex_unlock(&stages_lock);
    if (stage->log && stage->owner != getpid()) {
        cv_log_abandon(stage->log);
    } else if (stage->log) {
        pthread_mutex_lock(&stage->lock);
        stage->stop = true;
        pthread_cond_signal(&stage->work);
        pthread_mutex_unlock(&stage->lock);
        pthread_join(stage->thread, NULL);
        if (bad)
            snprintf(log, room, "%s", stage->log->control->id);
        else
            cv_marker_remove(stage->path, stage->log->control->id);
        cv_log_close(stage->log, bad);
    }
    free(stage->ring);
    free(stage);
    errno = error;
    return bad;
}

/* ---- The caller's side. ---- */

/* Index of the newest pending record that overlaps the range, or -1. Under the lock. */
static long overlapping(const struct cv_stage *stage, uint64_t address, uint64_t size)
{
    if (address >= stage->high || address + size <= stage->low)
        return -1;
    for (size_t i = stage->count; i-- > 0;) {
        const struct pending *p   = pending_at(stage, i);
        uint64_t              end = p->kind == CV_RECORD_RESIZE ? UINT64_MAX : p->address + p->size;
        if (p->address < address + size && address < end)
            return (long)i;
    }
    return -1;
}

/* Waits until nothing in the range is pending. Under the lock. Returns 0 or an errno. */
static int settle(struct cv_stage *stage, uint64_t address, uint64_t size)
{
    while (overlapping(stage, address, size) >= 0) {
        if (stage->error)
            return stage->error;
        pthread_cond_wait(&stage->progress, &stage->lock);
    }
    return 0;
}

int cv_stage_read(struct cv_stage *stage, uint64_t address, void *data, uint64_t size)
{
    int outcome = 0;

    if (!stage->log || stage->owner != getpid() || !size)
        return 0;
    pthread_mutex_lock(&stage->lock);
    long newest = overlapping(stage, address, size);
    if (newest >= 0) {
        const struct pending *p   = pending_at(stage, (size_t)newest);
        const char           *map = NULL;
        if (p->kind == CV_RECORD_WRITE && p->address <= address && address + size <= p->address + p->size &&
            size <= LARGE)
            map = cv_segment_map(p->place.segment);
        if (map) {
            memcpy(data, map + p->place.at + (address - p->address), size);
            outcome = 1;
        } else {
            uint64_t from = cv_ticks();
            stage->error  = 0;
            pthread_cond_signal(&stage->work);
            errno   = settle(stage, address, size);
            outcome = errno ? -1 : 0;
            CV_COUNT(drain_ns, cv_ticks() - from);
        }
    }
    pthread_mutex_unlock(&stage->lock);
    return outcome;
}

static int direct(struct cv_stage *stage, uint64_t address, const void *data, uint64_t size)
{
    if (stage->log && stage->owner == getpid()) {
        pthread_mutex_lock(&stage->lock);
        int error = settle(stage, address, size);
        pthread_mutex_unlock(&stage->lock);
        if (error) {
            errno = error;
            return -1;
        }
        CV_COUNT(direct_bytes, size);
    }
    return write_base(stage, address, data, size);
}

/* Puts a record that the log holds into the thread's queue. */
static int enqueue(struct cv_stage *stage, const struct pending *p)
{
    pthread_mutex_lock(&stage->lock);
    if (stage->count == stage->room) {
        size_t          room = stage->room ? 2 * stage->room : 64;
        struct pending *ring = malloc(room * sizeof *ring);
        if (!ring) { /* only then does the caller wait for all that is pending */
            int error = settle(stage, 0, UINT64_MAX);
            if (error || !stage->room) {
                pthread_mutex_unlock(&stage->lock);
                errno = error ? error : ENOMEM;
                return -1;
            }
        } else {
            for (size_t i = 0; i < stage->count; i++)
                ring[i] = *pending_at(stage, i);
            free(stage->ring);
            stage->ring = ring, stage->room = room, stage->first = 0;
        }
    }
    *pending_at(stage, stage->count++) = *p;
    uint64_t end = p->kind == CV_RECORD_RESIZE ? UINT64_MAX : p->address + p->size;
    stage->low   = p->address < stage->low ? p->address : stage->low;
    stage->high  = end > stage->high ? end : stage->high;
    pthread_cond_signal(&stage->work);
    pthread_mutex_unlock(&stage->lock);
    return 0;
}

/* Appends a record, waiting for room where the log is full. 0; -1 with errno for a migration that failed; 1 where
   the node-local storage does not take it. */
static int append(struct cv_stage *stage, enum cv_record_kind kind, uint64_t address, const void *data, uint64_t size)
{
    struct pending p = {.kind = kind, .address = address, .size = size};

    for (;;) {
        pthread_mutex_lock(&stage->lock);
        int error = stage->error;
        if (!error && stage->count >= MOST_PENDING)
            pthread_cond_wait(&stage->progress, &stage->lock);
        bool many = stage->count >= MOST_PENDING;
        pthread_mutex_unlock(&stage->lock);
        if (error) {
            errno = error;
            return -1;
        }
        if (many)
            continue;
        uint64_t from = cv_ticks();
        if (!cv_log_append(stage->log, kind, address, data, size, &p.place)) {
            cv_rate_note(&log_rate, size, cv_ticks() - from);
            return enqueue(stage, &p);
        }
        if (errno != EAGAIN)
            return 1;
        pthread_mutex_lock(&stage->lock);
        bool waited = stage->count && !stage->error;
        if (waited)
            pthread_cond_wait(&stage->progress, &stage->lock);
        error = stage->error;
        pthread_mutex_unlock(&stage->lock);
        CV_COUNT(backpressure_ns, cv_ticks() - from);
        if (!waited && !error)
            return 1;
    }
}

/* Whether staging a large write gains nothing: the base storage takes data about as fast as the log does. */
static bool base_is_fast(struct cv_stage *stage)
{
    uint64_t base = cv_rate(&base_rate), log = cv_rate(&log_rate);

    if (!cv_config.adaptive || !base || !log || base < log / 10 * 6)
        return false;
    if (++stage->direct_run % PROBE == 0)
        return false;
    return true;
}

int cv_stage_write(struct cv_stage *stage, bool raw, uint64_t address, const void *data, uint64_t size)
{
    const char *from = data;

    if (!size)
        return 0;
    if (raw && !stage->log && !stage->off) {
        stage->raw += size;
        if (stage->raw >= WORTH_STAGING)
            begin(stage);
    }
    if (stage->off || !stage->log)
        return direct(stage, address, data, size);
    if (size >= LARGE && base_is_fast(stage)) {
        CV_COUNT(direct_fast_base, 1);
        return direct(stage, address, data, size);
    }
    uint64_t begun = cv_ticks();
    if (begun < stage->paused_to) {
        CV_COUNT(direct_full, 1);
        return direct(stage, address, data, size);
    }
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done < CV_RECORD_DATA ? size - done : CV_RECORD_DATA;
        int      bad  = append(stage, CV_RECORD_WRITE, address + done, from + done, part);
        if (bad > 0) {
            stage->paused_to = cv_ticks() + PAUSE;
            CV_COUNT(direct_full, 1);
            return direct(stage, address + done, from + done, size - done);
        }
        if (bad)
            return -1;
        done += part;
    }
    CV_COUNT(staged_bytes, size);
    CV_COUNT(staged_writes, 1);
    CV_COUNT(staged_ns, cv_ticks() - begun);
    if (raw)
        atomic_fetch_add(&unflushed, size);
    return 0;
}

int cv_stage_resize(struct cv_stage *stage, uint64_t size)
{
    if (stage->log && !stage->off && cv_ticks() >= stage->paused_to) {
        int bad = append(stage, CV_RECORD_RESIZE, size, NULL, 0);
        if (bad <= 0)
            return bad;
    }
    if (cv_stage_drain(stage))
        return -1;
    uint64_t begun = change_begins(stage);
    int      bad = ftruncate(stage->base, (off_t)size), error = errno;
    change_ends(stage, begun);
    errno = error;
    return bad;
}
