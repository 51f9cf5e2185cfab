/* What the personality of HDF5 programs in steps was asked for. Sizes are bytes, times seconds. */
#ifndef IOKERNEL_OPTIONS_STEPS_H
#define IOKERNEL_OPTIONS_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct job;

enum steps_kind { STEPS_NONE, STEPS_CHECKPOINT, STEPS_SAMPLES, STEPS_STREAM };

struct steps_options {
    enum steps_kind kind;      /* --checkpoint, --samples, --stream */
    const char *path;          /* -o */
    const char *hdf5_library;  /* --hdf5.library, NULL for the system's */
    bool collective, keep;     /* -c -k */
    double compute;            /* --compute: after each step, or each batch */
    int64_t steps, datasets;   /* --steps --datasets */
    int64_t dataset;           /* -t: bytes of each task in a data set */
    int64_t count, sample, batch; /* --count (samples) --sample-size --batch (samples of one read) */
    int64_t epochs;            /* --epochs */
    bool random;               /* -z: another order of batches in each epoch */
    int64_t seed;              /* --random-offset-seed */
    bool evict;                /* --evict: before the first epoch */
};

/* Not collective: reads the arguments after "steps" into job->options; EXIT_DONE or EXIT_USAGE. */
int steps_parse(struct job *job, bool report);

/* Samples, counted in batches; the last one may be smaller. */
int64_t steps_batches(const struct steps_options *o);

#endif
