#include "fill.h"
#include "config.h"
#include "rates.h"
#include "stats.h"
#include "thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAUSE UINT64_C(1000000000) /* ns without tries after the node-local storage refused */
#define PATIENT 1 /* seconds for which the cleaning is waited for: it asks file systems, of which one may hang */
#define NICE 10      /* less than the program: a tenth of a busy processor still copies some 200 MB a second */
#define SPARE 4      /* buffers of each size that are kept: fresh ones cost a page fault for each page */
#define SIZES 6      /* of buffers: CV_PIECE and its halves, and room for two blocks more */
#define HUGE  (2 << 20) /* bytes of a large page */

struct job {
    struct cv_copy *copy;
    uint64_t        address, size;
    void           *buffer;
    struct job     *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  work = PTHREAD_COND_INITIALIZER, idle;
static struct job     *first, *last;
static struct cv_copy *ahead; /* copies that want prefetching */
static bool            running, busy;
static struct cv_store *dirty;    /* whose folder of copies wants cleaning */
static bool            sweeping;
static uint64_t        on_their_way; /* bytes in buffers that were handed out */
static void           *spare[SIZES][SPARE];
static unsigned        spares[SIZES];
static uint64_t        spare_bytes;

static uint64_t capacity(unsigned which)
{
    return (CV_PIECE >> which) + 2 * CV_BLOCK;
}

/* Which of the sizes is the smallest that is large enough. */
static unsigned size_for(uint64_t size)
{
    unsigned which = SIZES - 1;

    while (which > 0 && capacity(which) < size)
        which--;
    return which;
}

static void give_buffer(void *buffer, uint64_t size)
{
    unsigned which = size_for(size);

    on_their_way -= size;
    if (spares[which] < SPARE && on_their_way + spare_bytes + size <= cv_config.read_buffer) {
        spare[which][spares[which]++] = buffer;
        spare_bytes += capacity(which);
    } else {
        munmap(buffer, capacity(which));
    }
}

/* Not from malloc, so that the program's own memory lies as it does without us. */
static void *new_buffer(unsigned which)
{
    void *buffer = mmap(NULL, capacity(which), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (buffer == MAP_FAILED)
        return NULL;
    if (capacity(which) >= HUGE)
        madvise(buffer, capacity(which), MADV_HUGEPAGE);
    return buffer;
}

void *cv_fill_buffer(uint64_t size)
{
    void *buffer = NULL;

    pthread_mutex_lock(&lock);
    if (on_their_way + size <= cv_config.read_buffer) {
        unsigned which = size_for(size);
        if (spares[which]) {
            buffer = spare[which][--spares[which]];
            spare_bytes -= capacity(which);
        } else {
            buffer = new_buffer(which);
        }
        if (buffer)
            on_their_way += size;
    }
    pthread_mutex_unlock(&lock);
    return buffer;
}

void cv_fill_cancel(void *buffer, uint64_t size)
{
    pthread_mutex_lock(&lock);
    give_buffer(buffer, size);
    pthread_mutex_unlock(&lock);
}

static void put(struct cv_copy *copy, uint64_t address, const void *data, uint64_t size, bool asked)
{
    if (atomic_load(&copy->stale) || cv_ticks() < atomic_load(&copy->full)) {
        CV_COUNT(fill_skipped_bytes, size);
        return;
    }
    int64_t fresh = cv_copy_put(copy, address, data, size);
    if (fresh < 0) {
        atomic_store(&copy->full, cv_ticks() + PAUSE);
        CV_COUNT(fill_errors, 1);
    } else if (asked) {
        CV_COUNT(filled_bytes, fresh);
    } else {
        CV_COUNT(prefetched_bytes, fresh);
    }
}

/* Finds the next missing piece of a copy and brings it there; false once nothing is missing. */
static bool prefetch(struct cv_copy *copy, char *buffer)
{
    while (copy->ahead * CV_BLOCK < copy->size && !atomic_load(&copy->stale) &&
           cv_ticks() >= atomic_load(&copy->full)) {
        bool     there;
        uint64_t at  = copy->ahead * CV_BLOCK;
        uint64_t end = copy->size < at + CV_PIECE ? copy->size : at + CV_PIECE;
        uint64_t run = cv_copy_run(copy, at, end, &there);
        copy->ahead += (run + CV_BLOCK - 1) / CV_BLOCK;
        if (there)
            continue;
        ssize_t     got = cv_read_all(copy->base, buffer, run, (off_t)at);
        struct stat now;
        if (got != (ssize_t)run || fstat(copy->base, &now) || !cv_copy_fits(&copy->head.file, &now))
            return false;
        put(copy, at, buffer, run, false);
        return true;
    }
    return false;
}

static void *fill(void *unused)
{
    char *buffer = NULL;

    cv_thread_after_others(NICE);
    pthread_mutex_lock(&lock);
    for (;;) {
        struct job *job = first;
        if (job) {
            first = job->next;
            if (!first)
                last = NULL;
            busy = true;
            pthread_mutex_unlock(&lock);
            put(job->copy, job->address, job->buffer, job->size, true);
            cv_copy_release(job->copy);
            pthread_mutex_lock(&lock);
            give_buffer(job->buffer, job->size);
            free(job);
            busy = false;
            pthread_cond_broadcast(&idle);
        } else if (dirty) {
            struct cv_store *store = dirty;
            dirty = NULL, sweeping = true;
            pthread_mutex_unlock(&lock);
            cv_copy_sweep(store);
            pthread_mutex_lock(&lock);
            sweeping = false;
            pthread_cond_broadcast(&idle);
        } else if (ahead && (buffer || (buffer = malloc(CV_PIECE)))) {
            struct cv_copy *copy = ahead;
            cv_copy_hold(copy);
            busy = true;
            pthread_mutex_unlock(&lock);
            bool more = prefetch(copy, buffer);
            pthread_mutex_lock(&lock);
            busy = false;
            for (struct cv_copy **at = &ahead; !more && *at; at = &(*at)->next)
                if (*at == copy) {
                    *at = copy->next;
                    break;
                }
            pthread_mutex_unlock(&lock);
            cv_copy_release(copy);
            pthread_mutex_lock(&lock);
            pthread_cond_broadcast(&idle);
        } else {
            pthread_cond_wait(&work, &lock);
        }
    }
    return unused;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    while (first || busy)
        pthread_cond_wait(&idle, &lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&work, NULL);
    cv_timed_condition(&idle);
    running = false; /* the thread stayed with the parent; the child starts its own */
    ahead   = NULL;
    dirty = NULL, sweeping = false;
}

static void prepare(void)
{
    cv_timed_condition(&idle);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Under the lock. */
static bool start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_t             thread;

    if (running)
        return true;
    pthread_once(&once, prepare);
    running = !cv_thread_start(&thread, fill, NULL);
    if (running)
        pthread_detach(thread);
    return running;
}

void cv_fill(struct cv_copy *copy, uint64_t address, void *buffer, uint64_t size)
{
    struct job *job = malloc(sizeof *job);

    pthread_mutex_lock(&lock);
    if (!job || !start()) {
        give_buffer(buffer, size);
        pthread_mutex_unlock(&lock);
        free(job);
        return;
    }
    cv_copy_hold(copy);
    *job = (struct job){copy, address, size, buffer, NULL};
    if (last)
        last->next = job;
    else
        first = job;
    last = job;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
}

void cv_fill_sweep(struct cv_store *store)
{
    pthread_mutex_lock(&lock);
    if (start()) {
        dirty = store;
        pthread_cond_signal(&work);
    }
    pthread_mutex_unlock(&lock);
}

void cv_fill_ahead(struct cv_copy *copy)
{
    pthread_mutex_lock(&lock);
    if (start()) {
        copy->next = ahead;
        ahead      = copy;
        pthread_cond_signal(&work);
    }
    pthread_mutex_unlock(&lock);
}

void cv_fill_forget(struct cv_copy *copy)
{
    pthread_mutex_lock(&lock);
    for (struct cv_copy **at = &ahead; *at; at = &(*at)->next)
        if (*at == copy) {
            *at = copy->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void cv_fill_finish(void)
{
    pthread_mutex_lock(&lock);
    while (running && (first || busy))
        pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
}

void cv_fill_swept(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENT;
    pthread_mutex_lock(&lock);
    while (running && (dirty || sweeping) && !pthread_cond_timedwait(&idle, &lock, &until))
        ;
    pthread_mutex_unlock(&lock);
}
