#include "guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST 2048 /* maps; more are not guarded */

/* Read by the handler without a lock: a place is free while its size is 0. */
static struct {
    _Atomic uintptr_t begin;
    _Atomic size_t    size;
    atomic_bool       gone;
} maps[MOST + 1]; /* the last one stands for those that are not guarded */

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction otherwise; /* what happens at a bus error that is not ours */

static void bus_error(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;

    for (size_t i = 0; i < MOST; i++) {
        size_t    size  = atomic_load(&maps[i].size);
        uintptr_t begin = atomic_load(&maps[i].begin);
        if (!size || at < begin || at >= begin + size)
            continue;
        size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (at - begin) / page * page;
        if (mmap((char *)info->si_addr - (at - begin - before), size - before, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            continue;
        atomic_store(&maps[i].gone, true);
        return;
    }
    if (otherwise.sa_flags & SA_SIGINFO)
        otherwise.sa_sigaction(number, info, context);
    else if (otherwise.sa_handler != SIG_DFL && otherwise.sa_handler != SIG_IGN)
        otherwise.sa_handler(number);
    else
        sigaction(SIGBUS, &otherwise, NULL); /* and the access, made again, has its way */
}

/* Unless it is ours already; somebody who came later passes on to it what is not his. */
static void watch(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK}, now;

    ours.sa_sigaction = bus_error;
    if (!otherwise.sa_flags && !otherwise.sa_handler && !sigaction(SIGBUS, NULL, &now) && now.sa_sigaction != bus_error)
        sigaction(SIGBUS, &ours, &otherwise);
}

const atomic_bool *cv_guard(void *map, size_t size)
{
    size_t i = 0;

    pthread_mutex_lock(&lock);
    watch();
    while (i < MOST && atomic_load(&maps[i].size))
        i++;
    if (i < MOST) {
        atomic_store(&maps[i].gone, false);
        atomic_store(&maps[i].begin, (uintptr_t)map);
        atomic_store(&maps[i].size, size);
    }
    pthread_mutex_unlock(&lock);
    return &maps[i].gone;
}

void cv_guard_no_more(const void *map)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST; i++)
        if (atomic_load(&maps[i].begin) == (uintptr_t)map)
            atomic_store(&maps[i].size, 0);
    pthread_mutex_unlock(&lock);
}
