#include "relay.h"

#include "thread.h"

#include <pthread.h>
#include <string.h>

#define CHUNK (128 << 10) /* bytes copied at once */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static bool            running, active, waited;
static const char     *source;
static char           *target;
static size_t          there, next, copied; /* bytes: read, taken, copied */

/* Copies one chunk of what is there. Under the lock. */
static bool copy_some(void)
{
    size_t at = next, size = there - next < CHUNK ? there - next : CHUNK;

    if (!size)
        return false;
    next += size;
    pthread_mutex_unlock(&lock);
    memcpy(target + at, source + at, size);
    pthread_mutex_lock(&lock);
    copied += size;
    if (waited && copied == next)
        pthread_cond_broadcast(&done);
    return true;
}

static void *help(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;)
        if (!active || !copy_some())
            pthread_cond_wait(&work, &lock);
    return unused;
}

/* ---- The thread stays with the parent of a fork; a child starts its own. ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    while (active)
        pthread_cond_wait(&done, &lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&work, NULL);
    pthread_cond_init(&done, NULL);
    running = false;
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Under the lock. Without a thread, the caller copies all by itself. */
static void start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_t             thread;

    pthread_once(&once, watch_forks);
    running = !cv_thread_start(&thread, help, NULL);
    if (running)
        pthread_detach(thread);
}

bool cv_relay_begin(const char *from, char *to)
{
    pthread_mutex_lock(&lock);
    bool ours = !active;
    if (ours) {
        if (!running)
            start();
        active = true, waited = false;
        source = from, target = to;
        there = next = copied = 0;
    }
    pthread_mutex_unlock(&lock);
    return ours;
}

void cv_relay_have(size_t have)
{
    pthread_mutex_lock(&lock);
    there = have;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
}

void cv_relay_end(size_t have)
{
    pthread_mutex_lock(&lock);
    there = have ? have : next;
    while (copy_some())
        ;
    waited = true;
    while (copied < next)
        pthread_cond_wait(&done, &lock);
    active = false;
    pthread_cond_broadcast(&done); /* a fork waits for this */
    pthread_mutex_unlock(&lock);
}
