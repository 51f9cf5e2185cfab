/* What the streams leave for the report, in memory that all processes share. Times in nanoseconds. */
#ifndef REPLAY_BOARD_H
#define REPLAY_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

enum group { GROUP_READ, GROUP_WRITE, GROUP_METADATA, GROUP_SYNC, GROUPS };

struct tally {
    _Atomic uint64_t count[GROUPS], bytes[GROUPS], time[GROUPS];
};

struct board {
    _Atomic uint32_t implicit_opens; /* a stream used a file that it had not opened */
    _Atomic uint32_t absent;         /* open, stat, unlink, rename or mkdir said no: so it did to the program, maybe */
    _Atomic uint32_t failed;
    char message[512]; /* of the first failure */
    int64_t began;     /* CLOCK_MONOTONIC */
    _Atomic uint32_t *done;    /* for each stream: operations; what others wait for, as a futex */
    _Atomic uint32_t *waiting; /* for each stream: how many wait for it */
    struct tally *files;    /* for each file */
};

#endif
