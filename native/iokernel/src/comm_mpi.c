/*
 * Processes started by an MPI launcher. Signals set a flag that every rank
 * looks at between operations; the ranks then agree to stop, as after any
 * other failure.
 */
#include "comm.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "layout.h"

enum { HOST = 256 };

#define PART (1 << 30) /* MPI counts are int; larger transfers go in parts */

static MPI_Comm handle(const struct comm *c)
{
    return *(MPI_Comm *)c->state;
}

static MPI_Op operation(enum reduce how)
{
    return how == REDUCE_MIN ? MPI_MIN : how == REDUCE_MAX ? MPI_MAX : MPI_SUM;
}

static void mpi_barrier(const struct comm *c)
{
    MPI_Barrier(handle(c));
}

static void mpi_reduce_int(const struct comm *c, int64_t *values, size_t count, enum reduce how)
{
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_INT64_T, operation(how), handle(c));
}

static void mpi_reduce_double(const struct comm *c, double *values, size_t count, enum reduce how)
{
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, operation(how), handle(c));
}

static void mpi_gather(const struct comm *c, const void *mine, size_t bytes, void *all)
{
    MPI_Gather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, handle(c));
}

static void mpi_bcast(const struct comm *c, void *data, size_t bytes, int root)
{
    for (size_t at = 0; at < bytes; at += PART)
        MPI_Bcast((char *)data + at, (int)(bytes - at < PART ? bytes - at : PART), MPI_BYTE, root, handle(c));
}

static const struct comm_ops mpi_ops = {
    .barrier = mpi_barrier,
    .reduce_int = mpi_reduce_int,
    .reduce_double = mpi_reduce_double,
    .gather = mpi_gather,
    .bcast = mpi_bcast,
};

bool comm_start(int *argc, char ***argv)
{
    int rank;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

void comm_finish(void)
{
    MPI_Finalize();
}

int comm_agree(int status)
{
    MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return status;
}

bool comm_is_mpi(void)
{
    return true;
}

void comm_library(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    snprintf(text, size, "%s", version);
}

void *comm_mpi_handle(const struct comm *c)
{
    return c->state;
}

/* The number of a rank's node, in the order in which the ranks name them, and how many nodes there are. */
static int node_of(int rank, int size, int *nodes)
{
    char mine[HOST], *all = malloc((size_t)size * HOST);
    int number = -1;
    *nodes = 0;
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    layout_host(mine, sizeof mine, rank);
    MPI_Allgather(mine, HOST, MPI_BYTE, all, HOST, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) {
        int first = 0;
        while (strcmp(all + (size_t)first * HOST, all + (size_t)i * HOST) != 0)
            first++;
        if (first == i) {
            if (strcmp(all + (size_t)i * HOST, mine) == 0)
                number = *nodes;
            ++*nodes;
        }
    }
    free(all);
    return number;
}

int comm_run(struct job *job, int (*report)(const struct job *job))
{
    int world_rank, world_size, rank = 0, nodes, status = EXIT_DONE;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (job->tasks_wanted > world_size)
        return usage_error(world_rank == 0, "-N", "%d tasks wanted, but the launcher started only %d",
                           job->tasks_wanted, world_size);
    job->tasks = job->tasks_wanted > 0 ? job->tasks_wanted : world_size;
    bool takes_part = world_rank < job->tasks;
    if (job->node_wanted >= 0) {
        takes_part = node_of(world_rank, world_size, &nodes) == job->node_wanted && takes_part;
        if (job->node_wanted >= nodes)
            return usage_error(world_rank == 0, "--on-node", "%d, but the launcher started on %d node%s", job->node_wanted,
                               nodes, nodes == 1 ? "" : "s");
    }
    MPI_Comm tasks;
    MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, world_rank, &tasks);
    if (takes_part) {
        MPI_Comm_rank(tasks, &rank);
        MPI_Comm_size(tasks, &job->tasks);
        stop_on_signals();
        void *memory = calloc(1, board_size(job, job->tasks));
        job->journal = journal_open();
        if (!memory || !job->journal) {
            fprintf(stderr, "iokernel: rank %d cannot get memory for its results\n", world_rank);
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
        }
        job->board = board_place(memory, job, job->tasks);
        struct comm c = {.ops = &mpi_ops, .rank = rank, .started = world_rank, .size = job->tasks, .state = &tasks};
        status = job->personality->body(job, &c);
        if (status != EXIT_USAGE) {
            if (job->board->failure.set)
                job->personality->clean(job, rank);
            MPI_Barrier(tasks);
            if (rank == 0) {
                if (job->board->failure.set)
                    failure_print(&job->board->failure);
                int written = report(job);
                status = status == EXIT_DONE ? written : status;
            }
        }
        fclose(job->journal);
        free(memory);
        MPI_Comm_free(&tasks);
    }
    return status;
}
