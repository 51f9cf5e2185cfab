#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "document.h"
#include "json.h"
#include "pattern.h"

static int row_capacity(const struct job *job)
{
    const struct data_options *o = job->options;
    return (int)o->repetitions * o->phase_count;
}

/* Removes a rank's data file when this run made it, or when it is exactly what the test would have made. */
static void remove_file(const struct job *job, int rank, bool by_size)
{
    const struct data_options *o = job->options;
    unsigned char mark = job->board->marks[rank];
    if (o->file_per_process || rank == 0) {
        char *path = data_path(o, rank);
        struct stat st;
        int64_t size = data_bytes_per_task(o) * (o->file_per_process ? 1 : job->tasks);
        if (path && lstat(path, &st) == 0 &&
            ((mark & MARK_FILE) || (by_size && !o->backend->framed && S_ISREG(st.st_mode) && st.st_size == size)))
            unlink(path);
        free(path);
    }
    if (mark & MARK_DIRECTORY) {
        char *folder = data_directory(o, rank);
        if (folder)
            rmdir(folder);
        free(folder);
    }
}

static void clean(const struct job *job, int rank)
{
    const struct data_options *o = job->options;
    if (!o->keep)
        remove_file(job, rank, false);
}

/* Collective: has -T run out? Rank 0 decides. */
static bool out_of_time(struct data_run *run)
{
    int64_t over = run->deadline > 0 && clock_ns() >= run->deadline;
    comm_bcast(&run->comm, &over, sizeof over, 0);
    if (over)
        run->job->board->deadline_reached = true;
    return over;
}

static void repetitions(struct data_run *run)
{
    const struct data_options *o = run->o;
    bool starts_with_write = o->phases[0].access == ACCESS_WRITE;
    for (int repetition = 0; repetition < o->repetitions; repetition++) {
        bool first = true;
        for (int index = 0; index < o->phase_count; index++, first = false) {
            if (out_of_time(run))
                break;
            if (!phase_run(run, repetition, index, first))
                return;
            if (run->job->verbose && run->comm.rank == 0)
                fprintf(stderr, "iokernel: repetition %d, phase %d done\n", repetition, index);
        }
        /* files that the next repetition reads, or shall find in place, stay until the last one */
        bool last = repetition + 1 == o->repetitions || run->job->board->deadline_reached;
        int64_t ending = last; /* rank 0 knows about the deadline, all agree in out_of_time */
        comm_barrier(&run->comm);
        if (!o->keep && !o->prepare_only && (ending || (starts_with_write && !o->use_existing))) {
            remove_file(run->job, run->comm.rank, true);
            run->last = LAST_NONE;
            for (int i = 0; i < run->comm.size; i++)
                run->written[i] = -1;
            comm_barrier(&run->comm);
        }
        if (run->job->board->deadline_reached)
            return;
    }
}

/* More than what file systems compress at a time: 128 KiB. */
#define SMALL_BUFFER (INT64_C(256) << 10)

/* The transfer buffers, page-aligned for O_DIRECT and touched once before anything is timed. */
static void allocate(struct data_run *run)
{
    const struct data_options *o = run->o;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (size_t)(o->backend->buffers ? o->backend->buffers(o) : 1) * (size_t)o->transfer;
    if (size < SMALL_BUFFER && !o->backend->buffers)
        size = SMALL_BUFFER;
    run->buffer_bytes = (int64_t)size;
    void *memory = NULL;
    int error = posix_memalign(&memory, page < 4096 ? 4096 : page, size);
    run->buffer = memory;
    run->written = malloc((size_t)run->comm.size * sizeof *run->written);
    if (error || !run->written) {
        failure_note(&run->failure, "allocate", NULL, ENOMEM, "no memory for buffers of %zu bytes", size);
        return;
    }
    struct data_source data = data_source_of(o, run->comm.rank, run->data_seed);
    data_fill(&data, run->buffer, (int64_t)size);
    for (int i = 0; i < run->comm.size; i++)
        run->written[i] = -1;
}

static int body(struct job *job, const struct comm *comm)
{
    struct data_run run = {.job = job, .o = job->options, .comm = *comm};
    int status = EXIT_DONE;
    if (!layout_build(&run.layout, &run.comm)) {
        failure_note(&run.failure, "allocate", NULL, ENOMEM, NULL);
        goto end;
    }
    run.order_seed = run.o->order_seed;
    run.data_seed = run.o->data_seed >= 0 ? run.o->data_seed : data_salt();
    comm_bcast(&run.comm, &run.data_seed, sizeof run.data_seed, 0);
    if (run.o->deadline_minutes)
        run.deadline = clock_ns() + 60 * NS_PER_S * run.o->deadline_minutes;
    if (run.comm.rank == 0) {
        job->board->nodes = run.layout.nodes;
        job->board->tasks_on_node0 = run.layout.tasks_on_node0;
        job->board->data_seed = run.data_seed;
        job->board->order_seed = run.order_seed;
    }
    status = space_check(&run);
    if (status == EXIT_DONE) {
        allocate(&run);
        if (!failure_agree(&run.failure, &run.comm, "prepare"))
            repetitions(&run);
    }
end:
    status = board_settle(job->board, &run.failure, &run.comm, status);
    layout_free(&run.layout);
    free(run.buffer);
    free(run.written);
    return status;
}

static void json_parameters(const struct job *job, struct json *j)
{
    static const char *const reorders[] = {"none", "constant", "random", "shuffle"};
    const struct data_options *o = job->options;
    const struct board *b = job->board;
    bool writes = false, reads = false;
    for (int i = 0; i < o->phase_count; i++) {
        writes = writes || o->phases[i].access == ACCESS_WRITE;
        reads = reads || o->phases[i].access == ACCESS_READ;
    }
    json_object(j, "Parameters");
    json_int(j, "testID", 0);
    json_string(j, "api", o->backend->name);
    json_string(j, "testFileName", o->path);
    json_double(j, "deadlineForStonewall", o->stonewall);
    json_int(j, "stoneWallingWearOut", o->wear_out);
    json_int(j, "stoneWallingWearOutIterations", o->wear_out_operations);
    json_int(j, "maxTimeDuration", o->deadline_minutes);
    json_int(j, "nodes", b->nodes);
    json_int(j, "numTasks", job->tasks);
    json_int(j, "tasksPerNode", b->tasks_on_node0);
    json_int(j, "numTasksOnNode0", o->tasks_on_node0 ? o->tasks_on_node0 : b->tasks_on_node0);
    json_int(j, "repetitions", o->repetitions);
    json_int(j, "interTestDelay", o->delay);
    json_int(j, "fsync", o->sync_phase);
    json_int(j, "fsyncperwrite", o->sync_each);
    json_int(j, "useExistingTestFile", o->use_existing);
    json_int(j, "uniqueDir", o->unique_dir);
    json_int(j, "readFile", reads);
    json_int(j, "writeFile", writes);
    json_int(j, "filePerProc", o->file_per_process);
    json_int(j, "intraTestBarriers", o->barriers);
    json_int(j, "reorderTasks", o->reorder == REORDER_CONSTANT);
    json_int(j, "reorderTasksRandom",
             o->reorder == REORDER_RANDOM ? 1 : o->reorder == REORDER_SHUFFLE ? 2 : 0);
    json_int(j, "reorderTasksRandomSeed", o->reorder_seed);
    json_int(j, "taskPerNodeOffset", o->node_offset);
    json_int(j, "randomOffset", o->random);
    json_int(j, "checkWrite", o->check_write);
    json_int(j, "checkRead", o->check_read);
    json_int(j, "keepFile", o->keep);
    json_int(j, "verbose", job->verbose);
    json_int(j, "collective", o->collective);
    json_int(j, "segmentCount", o->segments);
    json_int(j, "transferSize", o->transfer);
    json_int(j, "blockSize", o->block);
    json_line(j);
    json_bool(j, "preallocate", o->preallocate);
    json_bool(j, "useFileView", o->file_view);
    json_bool(j, "odirect", o->direct);
    if (b->order_seed < 0)
        json_null(j, "randomSeed");
    else
        json_int(j, "randomSeed", b->order_seed);
    json_bool(j, "randomSeedGiven", o->order_seed >= 0);
    json_int(j, "dataSeed", b->data_seed);
    json_bool(j, "dataSeedGiven", o->data_seed >= 0);
    static const char *const modes[] = {"incompressible", "random", "timestamp", "checkable"};
    json_string(j, "dataPattern", modes[data_source_of(o, 0, 0).mode]);
    json_double(j, "compressibility", o->compressible);
    json_double(j, "dedup", o->repeated);
    json_int(j, "queueDepth", o->queue_depth);
    json_int(j, "fsyncsPerWrite", o->sync_each);
    json_string(j, "reorder", reorders[o->reorder]);
    if (o->task_offset < 0)
        json_null(j, "taskOffset");
    else
        json_int(j, "taskOffset", o->task_offset);
    json_bool(j, "evict", o->evict);
    json_bool(j, "behind", o->behind);
    json_bool(j, "prepareOnly", o->prepare_only);
    json_double(j, "timeseriesInterval", o->series_interval);
    json_double(j, "maxBytesFill", o->fill_limit);
    json_string(j, "launcher", comm_is_mpi() ? "mpi" : "fork");
    json_array(j, "phases");
    for (int i = 0; i < o->phase_count; i++) {
        char name[3] = {o->phases[i].access == ACCESS_WRITE ? 'w' : 'r', o->phases[i].random ? 'z' : '\0', '\0'};
        json_string(j, NULL, name);
    }
    json_array_end(j);
    json_object_end(j);
}

static void json_options(const struct job *job, struct json *j)
{
    const struct data_options *o = job->options;
    json_object(j, "Options");
    json_string(j, "api", o->backend->name);
    json_string(j, "test filename", o->path);
    json_string(j, "access", o->file_per_process ? "file-per-process" : "single-shared-file");
    json_string(j, "type", o->collective ? "collective" : "independent");
    json_int(j, "segments", o->segments);
    json_string(j, "ordering in a file", o->random ? "random" : "sequential");
    json_string(j, "ordering inter file",
                o->reorder == REORDER_NONE       ? "no tasks offsets"
                : o->reorder == REORDER_CONSTANT ? "constant task offset"
                                                 : "random task offset");
    json_int(j, "nodes", job->board->nodes);
    json_int(j, "tasks", job->tasks);
    json_int(j, "clients per node", job->board->tasks_on_node0);
    json_int(j, "repetitions", o->repetitions);
    json_int(j, "xfersize", o->transfer);
    json_int(j, "blocksize", o->block);
    json_int(j, "aggregate filesize", data_bytes_per_task(o) * job->tasks);
    json_object_end(j);
}

static void json_summary(const struct job *job, struct json *j, int index)
{
    const struct data_options *o = job->options;
    json_object(j, NULL);
    json_string(j, "operation", o->phases[index].access == ACCESS_WRITE ? "write" : "read");
    json_string(j, "API", o->backend->name);
    json_int(j, "TestID", 0);
    json_int(j, "phase", index);
    json_bool(j, "random", o->phases[index].random);
    json_int(j, "segmentCount", o->segments);
    json_int(j, "blockSize", o->block);
    json_int(j, "transferSize", o->transfer);
    json_int(j, "numTasks", job->tasks);
    json_int(j, "tasksPerNode", job->board->tasks_on_node0);
    json_int(j, "repetitions", o->repetitions);
    json_int(j, "filePerProc", o->file_per_process);
    json_int(j, "reorderTasks", o->reorder == REORDER_CONSTANT);
    json_int(j, "taskPerNodeOffset", o->node_offset);
    json_int(j, "reorderTasksRandom", o->reorder == REORDER_RANDOM || o->reorder == REORDER_SHUFFLE);
    json_int(j, "reorderTasksRandomSeed", o->reorder_seed);
    document_summary(job, j, index);
    json_object_end(j);
}

static void report(const struct job *job, struct json *j)
{
    const struct data_options *o = job->options;
    document_test(job, j, o->path);
    json_parameters(job, j);
    json_line(j);
    json_options(job, j);
    json_line(j);
    document_results(job, j);
    json_array(j, "summary");
    for (int i = 0; i < o->phase_count; i++)
        if (document_measured(job, i))
            json_summary(job, j, i);
    json_array_end(j);
}

const struct personality data_personality = {
    .name = NULL,
    .parse = data_parse,
    .row_capacity = row_capacity,
    .body = body,
    .clean = clean,
    .report = report,
};
