/*
 * Clocks. Durations come from CLOCK_MONOTONIC, which never jumps; the wall
 * clock is read once per phase, only to place the phase in calendar time.
 */
#ifndef IOKERNEL_CLOCK_H
#define IOKERNEL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000LL

/* Nanoseconds since an arbitrary point that all processes of one node share. */
static inline int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Seconds since the epoch, with the precision of a double (about 0.2 us). */
static inline double clock_epoch(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static inline void sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nanosleep(&t, NULL);
}

#endif
