/*
 * The processes of a run and how they talk: a table of collective operations
 * with two implementations, comm_fork.c (processes of one machine over shared
 * memory) and comm_mpi.c. Exactly one is linked into a program.
 */
#ifndef IOKERNEL_COMM_H
#define IOKERNEL_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

enum reduce { REDUCE_MIN, REDUCE_MAX, REDUCE_SUM };

struct comm;

struct comm_ops {
    bool shares_memory; /* between the ranks: one board for all, see job.h */
    void (*barrier)(const struct comm *c);
    /* in place; every rank gets the result */
    void (*reduce_int)(const struct comm *c, int64_t *values, size_t count, enum reduce how);
    void (*reduce_double)(const struct comm *c, double *values, size_t count, enum reduce how);
    /* bytes from each rank, in the order of ranks, into all, which only rank 0 passes */
    void (*gather)(const struct comm *c, const void *mine, size_t bytes, void *all);
    void (*bcast)(const struct comm *c, void *data, size_t bytes, int root);
};

struct comm {
    const struct comm_ops *ops;
    int rank, size;
    int started;    /* number of this process among all that were started, of which some may wait */
    char host[256]; /* the node's name, see layout.h */
    void *state;    /* of the implementation */
};

static inline void comm_barrier(const struct comm *c) { c->ops->barrier(c); }

static inline void comm_reduce_int(const struct comm *c, int64_t *values, size_t count, enum reduce how)
{
    c->ops->reduce_int(c, values, count, how);
}

static inline void comm_reduce_double(const struct comm *c, double *values, size_t count, enum reduce how)
{
    c->ops->reduce_double(c, values, count, how);
}

static inline void comm_gather(const struct comm *c, const void *mine, size_t bytes, void *all)
{
    c->ops->gather(c, mine, bytes, all);
}

static inline void comm_bcast(const struct comm *c, void *data, size_t bytes, int root)
{
    c->ops->bcast(c, data, bytes, root);
}

/* ---- the launching side, one implementation per program ---- */

struct job;

/* True for the one process that speaks to the user. Call first of all. */
bool comm_start(int *argc, char ***argv);

/* The largest of the statuses of all processes, before comm_run. */
int comm_agree(int status);

/*
 * Runs the job on all its processes, cleans up after a failure, and has the report written by the one
 * process that speaks; the exit status.
 */
int comm_run(struct job *job, int (*report)(const struct job *job));

/* Call last of all. */
void comm_finish(void);

bool comm_is_mpi(void);
void comm_library(char *text, size_t size); /* version of the MPI library, or "" */

/* The MPI communicator of a struct comm, for the MPI-IO backend: a MPI_Comm *, or NULL. */
void *comm_mpi_handle(const struct comm *c);

#endif
