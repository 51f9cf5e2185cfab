/* Threads of ours in somebody else's program. */
#ifndef CACHEVOL_THREAD_H
#define CACHEVOL_THREAD_H

#include <pthread.h>

/* A condition that is waited for until a time of cv_ticks: the clock of the day may be set back. */
void cv_timed_condition(pthread_cond_t *condition);

/* As pthread_create; no signal goes to the thread, since signals are the program's own matter. */
int cv_thread_start(pthread_t *thread, void *(*work)(void *), void *argument);

/* The calling thread lets the program's threads go first where processors are scarce: it never interrupts them as it
   wakes, and takes a smaller share beside them (`less`, as of nice(1)). */
void cv_thread_after_others(int less);

#endif
