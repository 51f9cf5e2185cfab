#include "thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void cv_timed_condition(pthread_cond_t *condition)
{
    pthread_condattr_t how;

    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC); /* that of cv_ticks */
    pthread_cond_init(condition, &how);
    pthread_condattr_destroy(&how);
}

int cv_thread_start(pthread_t *thread, void *(*work)(void *), void *argument)
{
    sigset_t all, before;

    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* which comes of what the thread itself does (guard.h) */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, work, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void cv_thread_after_others(int less)
{
    id_t               self = (id_t)syscall(SYS_gettid);
    struct sched_param none = {0};

    /* Both concern this thread alone, on Linux. A program with a policy of its own keeps that. */
    if (sched_getscheduler(0) == SCHED_OTHER)
        sched_setscheduler(0, SCHED_BATCH, &none);
    setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + less);
}
