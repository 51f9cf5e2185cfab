#include "steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "document.h"
#include "hdf5_library.h"
#include "json.h"
#include "layout.h"
#include "pattern.h"

static const char *const kinds[] = {"", "checkpoint", "samples", "stream"};

static int row_capacity(const struct job *job)
{
    (void)job;
    return 1;
}

/* Removes the file of a run that failed, where the run made it. */
static void clean(const struct job *job, int rank)
{
    const struct steps_options *o = job->options;
    if (rank == 0 && (job->board->marks[0] & MARK_FILE))
        unlink(o->path);
}

static size_t buffer_bytes(const struct steps_options *o)
{
    return (size_t)(o->kind == STEPS_CHECKPOINT ? o->dataset : o->batch * o->sample);
}

/* Rank 0, under one key each: what every task reports. */
static void ranks_json(struct json *j, const struct steps_options *o, const struct steps_record *all, int tasks, size_t each)
{
    json_array(j, "ranks");
    for (int rank = 0; rank < tasks; rank++) {
        json_array(j, NULL);
        for (size_t i = 0; i < each; i++) {
            const struct steps_record *r = &all[(size_t)rank * each + i];
            json_object(j, NULL);
            if (o->kind == STEPS_STREAM) {
                json_double(j, "seconds", r->reading);
                json_double(j, "cpu", r->cpu);
            } else {
                json_double(j, "total", r->total);
                json_double(j, "compute", r->compute);
                json_double(j, "observed", r->total - r->compute);
            }
            json_int(j, "bytes", r->bytes);
            json_object_end(j);
        }
        json_array_end(j);
    }
    json_array_end(j);
}

/* Collective: the result, in rank 0's journal. */
static void deliver(struct job *job, struct steps_run *run, const struct steps_record *mine, size_t each)
{
    struct steps_record *all = run->comm->rank == 0 ? calloc((size_t)run->comm->size * each, sizeof *all) : NULL;
    if (run->comm->rank == 0 && !all)
        failure_note(&run->failure, "allocate", NULL, ENOMEM, NULL);
    if (failure_agree(&run->failure, run->comm, "report")) {
        free(all);
        return;
    }
    comm_gather(run->comm, mine, each * sizeof *mine, all);
    char *text = NULL;
    size_t length = 0;
    FILE *out = all ? open_memstream(&text, &length) : NULL;
    if (out) {
        struct stat st = {0};
        struct json j;
        stat(run->o->path, &st);
        json_start(&j, out);
        json_object(&j, NULL);
        json_string(&j, "key", kinds[run->o->kind]);
        json_double(&j, "began", run->began);
        json_int(&j, "fileBytes", st.st_size);
        ranks_json(&j, run->o, all, run->comm->size, each);
        json_object_end(&j);
        fclose(out);
        journal_add(job, text, length);
        free(text);
    }
    free(all);
}

static int body(struct job *job, const struct comm *comm)
{
    const struct steps_options *o = job->options;
    struct comm own = *comm; /* that the layout names the node in */
    struct steps_run run = {.o = o, .comm = &own, .data = {.owner = comm->rank, .seed = data_salt()}};
    struct layout layout = {0};
    size_t each = o->kind == STEPS_STREAM ? (size_t)o->epochs : 1, size = buffer_bytes(o);
    struct steps_record *records = calloc(each, sizeof *records);
    struct stat st;
    run.buffer = malloc(size);
    if (!records || !run.buffer)
        failure_note(&run.failure, "allocate", NULL, ENOMEM, "no memory for buffers of %zu bytes", size);
    else
        data_fill(&run.data, run.buffer, (int64_t)size);
    if (!layout_build(&layout, &own))
        failure_note(&run.failure, "allocate", NULL, ENOMEM, NULL);
    if (!failure_agree(&run.failure, comm, "prepare")) {
        if (comm->rank == 0) {
            job->board->nodes = layout.nodes;
            job->board->tasks_on_node0 = layout.tasks_on_node0;
            if (o->kind != STEPS_STREAM && lstat(o->path, &st) != 0)
                job->board->marks[0] |= MARK_FILE;
        }
        if (o->kind == STEPS_CHECKPOINT)
            steps_checkpoint(&run, records);
        else if (o->kind == STEPS_SAMPLES)
            steps_samples(&run, records);
        else
            steps_stream(&run, records);
        if (!failure_agree(&run.failure, comm, kinds[o->kind]))
            deliver(job, &run, records, each);
        comm_barrier(comm);
        if (comm->rank == 0 && !o->keep && o->kind != STEPS_STREAM && !run.failure.set)
            unlink(o->path);
    }
    int status = board_settle(job->board, &run.failure, comm, EXIT_DONE);
    layout_free(&layout);
    free(run.buffer);
    free(records);
    return status;
}

static void report(const struct job *job, struct json *j)
{
    const struct steps_options *o = job->options;
    document_test(job, j, o->path);
    json_object(j, "Parameters");
    json_string(j, "kind", kinds[o->kind]);
    json_string(j, "testFileName", o->path);
    json_int(j, "nodes", job->board->nodes);
    json_int(j, "numTasks", job->tasks);
    json_int(j, "tasksPerNode", job->board->tasks_on_node0);
    json_double(j, "compute", o->compute);
    json_int(j, "collective", o->collective);
    json_int(j, "keepFile", o->keep);
    if (o->kind == STEPS_CHECKPOINT) {
        json_int(j, "steps", o->steps);
        json_int(j, "datasets", o->datasets);
        json_int(j, "datasetSize", o->dataset);
    } else {
        json_int(j, "samples", o->count);
        json_int(j, "sampleSize", o->sample);
        json_int(j, "batch", o->batch);
        json_int(j, "epochs", o->epochs);
        json_bool(j, "random", o->random);
        json_int(j, "randomSeed", o->seed);
        json_bool(j, "evict", o->evict);
    }
    json_object_end(j);
    json_line(j);
    document_results(job, j);
    json_array(j, "summary"); /* a program of phases has none: what counts is observed in the whole */
    json_array_end(j);
}

const struct personality steps_personality = {
    .name = "steps",
    .parse = steps_parse,
    .row_capacity = row_capacity,
    .body = body,
    .clean = clean,
    .report = report,
};
