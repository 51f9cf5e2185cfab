/* What the data personality was asked for. Sizes are bytes. */
#ifndef IOKERNEL_OPTIONS_DATA_H
#define IOKERNEL_OPTIONS_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "order.h"
#include "pattern.h"

struct job;

#define PHASES_MOST 64

struct phase_plan {
    enum access access;
    bool random;
};

enum reorder { REORDER_NONE, REORDER_CONSTANT, REORDER_RANDOM, REORDER_SHUFFLE };

struct data_options {
    const char *api;                /* -a */
    const struct backend *backend;
    const char *path;               /* -o */
    int64_t transfer, block, segments; /* -t -b -s */
    bool file_per_process, unique_dir; /* -F -u */
    bool collective;                /* -c */
    bool write, read, random;       /* -w -r -z */
    bool check_write, check_read;   /* -W -R */
    bool keep, use_existing;        /* -k -E */
    bool sync_phase, sync_each;     /* -e -Y */
    bool barriers;                  /* -g */
    int64_t repetitions, delay;     /* -i -d (seconds) */
    double stonewall;               /* -D seconds, 0 for none */
    bool wear_out;                  /* -O stoneWallingWearOut=1 */
    int64_t wear_out_operations;    /* -O stoneWallingWearOutIterations=N, 0 for none */
    int64_t deadline_minutes;       /* -T, 0 for none */
    int64_t order_seed;             /* --random-offset-seed, -1 when not given */
    int64_t data_seed;              /* -G, -1 when not given */
    enum data_mode data_mode;       /* -l */
    double compressible, repeated;  /* --compressibility --dedup, shares from 0 */
    enum reorder reorder;           /* -C -Z -ZZ */
    int64_t reorder_seed;           /* -X */
    int64_t node_offset;            /* -Q */
    int64_t task_offset;            /* --task-offset, -1 when not given */
    int64_t tasks_on_node0;         /* -O numTasksOnNode0, 0 for counted */
    bool direct;                    /* --posix.odirect, -B */
    bool preallocate, file_view;    /* --mpiio.preallocate -p, --mpiio.useFileView -V */
    const char *hdf5_library;       /* --hdf5.library, NULL for the one that the system finds */
    int queue_depth;                /* --queue-depth */
    bool evict, behind, prepare_only, per_rank;
    double series_interval;         /* seconds */
    double fill_limit;              /* --max-bytes-fill, share of the file system's capacity */
    int phase_count;                /* --phases */
    struct phase_plan phases[PHASES_MOST];
};

/* Reads the arguments of a job into a struct data_options; see struct personality. */
int data_parse(struct job *job, bool report);

/* What the writes of a file carry. */
struct data_source data_source_of(const struct data_options *o, int64_t owner, int64_t seed);

/* Bytes that each task moves in a phase when nothing cuts it short (a mean, for shuffled shared files). */
int64_t data_bytes_per_task(const struct data_options *o);

struct order_geometry data_geometry(const struct data_options *o, int tasks);

/* Name of the data file of a task, or of its directory (-u); the caller frees it. */
char *data_path(const struct data_options *o, int task);
char *data_directory(const struct data_options *o, int task);

#endif
