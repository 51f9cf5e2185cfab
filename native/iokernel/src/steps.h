/* HDF5 programs in steps, with computation between them: checkpoints, and a shared file of samples read in epochs. */
#ifndef IOKERNEL_STEPS_H
#define IOKERNEL_STEPS_H

#include "comm.h"
#include "failure.h"
#include "job.h"
#include "options_steps.h"
#include "pattern.h"

extern const struct personality steps_personality;

/* One task's view of a run. */
struct steps_run {
    const struct steps_options *o;
    const struct comm *comm;
    struct failure failure;
    char *buffer;
    struct data_source data; /* what a checkpoint carries: no data set repeats another */
    int64_t written;         /* bytes of the checkpoint so far */
    double began; /* epoch seconds, before the file is made or opened */
};

/* What a task reports: of the whole checkpoint, or of an epoch. Seconds and bytes. */
struct steps_record {
    double total;   /* checkpoint: from creating the file to closing it */
    double compute; /* of that asleep */
    double reading; /* epoch: in reads */
    double cpu;     /* epoch: of all threads, user and system */
    int64_t bytes;
};

/* Collective. A failure of one task ends it for all, at the next step, and is noted. */
void steps_checkpoint(struct steps_run *run, struct steps_record *record);
void steps_samples(struct steps_run *run, struct steps_record *record);
void steps_stream(struct steps_run *run, struct steps_record *records);

#endif
