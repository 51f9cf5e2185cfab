/* The data personality: IOR's write and read phases. */
#ifndef IOKERNEL_DATA_H
#define IOKERNEL_DATA_H

#include <sys/resource.h>

#include "job.h"
#include "layout.h"
#include "options_data.h"
#include "residency.h"
#include "transfer.h"

extern const struct personality data_personality;

/* What was last done to the data files in this run. */
enum last_access { LAST_NONE, LAST_WRITE, LAST_READ };

/* One rank's view of a run. */
struct data_run {
    struct job *job;
    const struct data_options *o;
    struct comm comm;
    struct layout layout;
    struct failure failure;
    char *buffer;
    int64_t buffer_bytes;
    int64_t data_seed;
    int64_t order_seed;    /* -1 until the first shuffle when no seed was given */
    int64_t *written;      /* operations of each task in a write that a stonewall ended early; -1: it wrote all */
    bool written_random;   /* the order of that write */
    enum last_access last;
    int64_t deadline;      /* monotonic ns after which no phase starts (-T); 0 for none */
};

/* The moments of a phase, in the order in which they happen; starts are even. */
enum stamp { OPEN_START, OPEN_STOP, MOVE_START, MOVE_STOP, CLOSE_START, CLOSE_STOP, STAMPS };

/* What one rank reports of a phase. */
struct rank_record {
    int64_t zero;          /* when it left the barrier before open; monotonic ns, like the stamps */
    int64_t stamp[STAMPS];
    int64_t operations, bytes, short_transfers, mismatches;
    int64_t walled_operations; /* done when the stonewall was hit, or in all */
    int64_t deadline_hit;
    int64_t file_size;     /* of its data file after the phase; 0 for other ranks' shared file */
    int64_t target;        /* task whose data it moved */
    double user, system;   /* CPU seconds */
    int64_t voluntary, involuntary; /* context switches */
    double began;          /* epoch seconds */
};

/* One phase of one repetition. */
struct phase {
    struct data_run *run;
    int repetition, index;
    enum access access;
    bool random, first;    /* first: of this repetition */
    const char *history;   /* WO, RO, RAW, WAW, RAR or WAR */
    int64_t order_seed;    /* as used by this rank, -1 when not shuffled */
    int task_offset;       /* of this rank: its target is rank + task_offset, modulo the tasks */
    int target;
    char *path;            /* data file of the target */
    struct rank_record record;
    struct residency residency;
    bool measured;         /* this rank measured a residency */
    struct behind *behind; /* of rank 0, where asked for */
    struct transfer transfer;
    struct histogram open_latency, close_latency;
};

/*
 * Collective. Runs one phase, and leaves its result in the journal. Returns
 * false when the run must end; run->failure says why.
 */
bool phase_run(struct data_run *run, int repetition, int index, bool first);

/* Which task's data each rank reads: IOR's -C, -Q, -Z and -X. */
int reorder_offset(const struct data_run *run, int rank, int repetition);

/* Collective: gathers a finished phase on rank 0 and puts its result in the journal. */
bool result_phase(struct phase *p);

/* Collective: the result of a phase that was only prepared. */
bool result_prepared(struct phase *p);

/*
 * Collective: EXIT_USAGE, after a message, when the data to write do not fit
 * in the file system or would fill it beyond the limit; EXIT_DONE otherwise.
 */
int space_check(struct data_run *run);

#endif
