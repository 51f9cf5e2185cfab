#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "behind.h"
#include "clock.h"
#include "data.h"

static const char *history_name(enum access access, enum last_access last)
{
    static const char *const names[2][3] = {
        [ACCESS_WRITE] = {[LAST_NONE] = "WO", [LAST_WRITE] = "WAW", [LAST_READ] = "WAR"},
        [ACCESS_READ] = {[LAST_NONE] = "RO", [LAST_WRITE] = "RAW", [LAST_READ] = "RAR"},
    };
    return names[access][last];
}

/* The seed of this phase's shuffle, as IOR chooses it. Collective. */
static void choose_seed(struct phase *p)
{
    struct data_run *run = p->run;
    p->order_seed = -1;
    if (!p->random)
        return;
    if (run->order_seed < 0) {
        /* without a seed IOR's first shuffle is the same for all tasks, later ones are not */
        run->order_seed = (int64_t)time(NULL) & INT32_MAX;
        comm_bcast(&run->comm, &run->order_seed, sizeof run->order_seed, 0);
        run->job->board->order_seed = run->order_seed;
        p->order_seed = run->order_seed;
        return;
    }
    p->order_seed = run->order_seed + (run->o->file_per_process ? p->target : 0);
}

/* Does this rank look after the file p->path (a shared file has one keeper)? */
static bool keeps_file(const struct data_run *run)
{
    return run->o->file_per_process || run->comm.rank == 0;
}

/* Before a write: IOR removes the file of an earlier run unless told to use it. Notes what this run will create. */
static void make_room(struct phase *p)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    unsigned char *mark = &run->job->board->marks[run->comm.rank];
    struct stat st;
    if (o->unique_dir) {
        char *folder = data_directory(o, p->target);
        bool ours = folder && !(*mark & MARK_DIRECTORY) && lstat(folder, &st) != 0;
        if (ours)
            *mark |= MARK_DIRECTORY; /* before it is made: a rank killed in between leaves no directory behind */
        if (!folder || mkdir(folder, 0700) != 0) {
            if (ours)
                *mark &= (unsigned char)~MARK_DIRECTORY;
            if (!folder || errno != EEXIST)
                failure_note(&run->failure, "mkdir", folder, errno, NULL);
        }
        free(folder);
    }
    bool exists = lstat(p->path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) {
        failure_note(&run->failure, "open", p->path, EISDIR, NULL);
        return;
    }
    /* a device is written to, never removed */
    bool removable = exists && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
    if (removable && p->first && !o->use_existing) {
        if (unlink(p->path) != 0)
            failure_note(&run->failure, "unlink", p->path, errno, NULL);
        exists = false;
    }
    if (!exists)
        *mark |= MARK_FILE;
}

/*
 * A file that is too short is better refused than read halfway; besides, some
 * MPI libraries report a collective read past the end as complete. Where a
 * stonewall or a limit may stop the read before the end, only the read itself
 * can tell.
 */
static void check_size(struct phase *p)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    int64_t expected = data_bytes_per_task(o) * (o->file_per_process ? 1 : run->comm.size);
    bool whole = o->stonewall <= 0 && !o->wear_out_operations;
    bool wrong = o->prepare_only && !o->backend->framed
                     ? p->residency.file != expected
                     : whole && p->residency.regular && p->residency.file < expected;
    if (wrong)
        failure_note(&run->failure, "check", p->path, 0, "the file holds %lld bytes, the test reads %lld",
                     (long long)p->residency.file, (long long)expected);
}

/* Before a read: drops cached pages when asked to, and always tells how much is cached. */
static void look_at_cache(struct phase *p)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    const struct comm *c = &run->comm;
    bool examines = o->file_per_process || c->rank == run->layout.leader;
    if (o->evict && examines) {
        int error = residency_evict(p->path);
        if (error)
            failure_note(&run->failure, "evict", p->path, error, NULL);
        if (o->file_per_process && p->target != c->rank) {
            /* what this rank wrote may still wait in its node's memory while another node wants to read it */
            char *own = data_path(o, c->rank);
            if (own)
                residency_evict(own);
            free(own);
        }
    }
    comm_barrier(c);
    if (o->behind && c->rank == 0) {
        p->behind = malloc(sizeof *p->behind);
        if (p->behind)
            behind_touch(run, p->behind);
    }
    if (examines) {
        int error = residency_measure(p->path, &p->residency);
        if (error)
            failure_note(&run->failure, "open", p->path, error, NULL);
        p->measured = true;
    }
    if (examines && !run->failure.set)
        check_size(p);
}

static double timeval_seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* The transfers between open and close, with the stonewall and its wear-out. */
static void move(struct phase *p)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    struct transfer *t = &p->transfer;
    const struct order_geometry g = data_geometry(o, run->comm.size);
    if (!p->random)
        order_sequential(&t->order, &g, p->target);
    else if (!order_random(&t->order, &g, p->target, (unsigned)p->order_seed))
        failure_note(&run->failure, "shuffle", p->path, ENOMEM, NULL);

    t->limit = t->order.per_segment ? order_total(&t->order) : 0;
    if (o->wear_out_operations && o->wear_out_operations < t->limit)
        t->limit = o->wear_out_operations;
    int64_t written = run->written[p->target];
    if (p->access == ACCESS_READ && written >= 0 && written < t->limit && p->random == run->written_random)
        t->limit = written; /* a stonewall ended the write early: what it left out is not there to be read */
    t->deadline = o->stonewall > 0 ? clock_ns() + (int64_t)(o->stonewall * 1e9) : INT64_MAX;
    if (!run->failure.set || t->lockstep)
        t->backend->loop(t);
    p->record.walled_operations = t->operations;
    if (o->wear_out) {
        int64_t most = t->operations;
        comm_reduce_int(&run->comm, &most, 1, REDUCE_MAX);
        t->deadline = INT64_MAX;
        if (t->order.per_segment && (!run->failure.set || t->lockstep)) {
            t->limit = most;
            t->backend->loop(t);
        }
    }
    if (p->access == ACCESS_WRITE && o->sync_phase && (!run->failure.set || t->lockstep)) {
        int error = t->backend->sync(t->file);
        if (error)
            failure_note(&run->failure, "fsync", p->path, error, NULL);
    }
}

/* Open, transfers and close, with IOR's stamps and barriers. */
static void timed(struct phase *p)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    const struct comm *c = &run->comm;
    struct transfer *t = &p->transfer;
    struct rank_record *r = &p->record;
    struct rusage before, after;
    bool shared_mpi = o->backend != &backend_posix && o->backend != &backend_uring && !o->file_per_process;

    comm_barrier(c);
    r->zero = clock_ns();
    r->began = clock_epoch();
    timeseries_start(&t->series, (int64_t)(o->series_interval * 1e9), r->zero);
    getrusage(RUSAGE_SELF, &before);

    r->stamp[OPEN_START] = clock_ns();
    int error = o->backend->open(t->file, p->path, p->access);
    r->stamp[OPEN_STOP] = clock_ns();
    if (error)
        failure_note(&run->failure, "open", p->path, error, "%s",
                     t->file->problem[0] ? t->file->problem : strerror(error));
    int64_t unopened = error != 0;
    if (shared_mpi) /* one open for all: it cannot be used, or closed, by only some of them */
        comm_reduce_int(c, &unopened, 1, REDUCE_MAX);
    histogram_add(&p->open_latency, r->stamp[OPEN_STOP] - r->stamp[OPEN_START]);
    if (o->barriers)
        comm_barrier(c);

    r->stamp[MOVE_START] = clock_ns();
    if (!unopened)
        move(p);
    else if (o->wear_out) {
        int64_t none = 0;
        comm_reduce_int(c, &none, 1, REDUCE_MAX); /* the other ranks count on this one */
    }
    r->stamp[MOVE_STOP] = clock_ns();
    if (o->barriers)
        comm_barrier(c);

    r->stamp[CLOSE_START] = clock_ns();
    if (!unopened) {
        error = o->backend->close(t->file);
        if (error)
            failure_note(&run->failure, "close", p->path, error, NULL);
    }
    r->stamp[CLOSE_STOP] = clock_ns();
    histogram_add(&p->close_latency, r->stamp[CLOSE_STOP] - r->stamp[CLOSE_START]);

    getrusage(RUSAGE_SELF, &after);
    r->user = timeval_seconds(after.ru_utime) - timeval_seconds(before.ru_utime);
    r->system = timeval_seconds(after.ru_stime) - timeval_seconds(before.ru_stime);
    r->voluntary = after.ru_nvcsw - before.ru_nvcsw;
    r->involuntary = after.ru_nivcsw - before.ru_nivcsw;
    r->operations = t->operations;
    r->bytes = t->bytes;
    r->short_transfers = t->file->short_transfers;
    r->mismatches = t->mismatches;
    r->deadline_hit = t->deadline_hit;
    r->target = p->target;
    if (p->access == ACCESS_WRITE)
        comm_barrier(c);
    order_free(&t->order);
}

/* Sets up the loop of a phase; see struct transfer. */
static void prepare_transfer(struct phase *p, struct file *file)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    struct transfer *t = &p->transfer;
    *file = (struct file){.options = o, .comm = &run->comm, .task = p->target, .fd = -1};
    t->backend = o->backend;
    t->file = file;
    t->path = p->path;
    t->access = p->access;
    t->length = o->transfer;
    t->collective = o->collective;
    t->sync_each = o->sync_each && p->access == ACCESS_WRITE;
    t->lockstep = o->backend != &backend_posix && o->backend != &backend_uring && !o->file_per_process &&
                  (o->collective || t->sync_each || o->sync_phase);
    t->check = p->access == ACCESS_READ && o->check_read;
    t->data = data_source_of(o, o->file_per_process ? p->target : 0, run->data_seed);
    if (t->data.mode != DATA_CHECKABLE) /* data of its own for each phase, and for the file of each task */
        t->data.seed += (int64_t)p->repetition * PHASES_MOST + p->index;
    t->buffer = run->buffer;
    t->room = run->buffer_bytes;
    t->failure = &run->failure;
    histogram_clear(&t->latency);
    histogram_clear(&t->sync_latency);
    histogram_clear(&p->open_latency);
    histogram_clear(&p->close_latency);
}

/* -W: reads back what was written, outside the clock, each task another node's data where there is one. */
static void check_written(struct phase *written)
{
    struct data_run *run = written->run;
    const struct data_options *o = run->o;
    struct phase *p = calloc(1, sizeof *p);
    struct file file;
    if (!p) {
        failure_note(&run->failure, "verify", NULL, ENOMEM, NULL);
        return;
    }
    p->run = run;
    p->access = ACCESS_READ;
    p->random = written->random;
    int offset = o->reorder == REORDER_CONSTANT && !(p->random && !o->file_per_process)
                     ? reorder_offset(run, run->comm.rank, 0) : 0;
    p->target = (run->comm.rank + offset) % run->comm.size;
    p->path = data_path(o, p->target);
    if (!p->path)
        failure_note(&run->failure, "verify", NULL, ENOMEM, NULL);
    choose_seed(p);
    prepare_transfer(p, &file);
    p->transfer.check = true;
    if (p->path)
        timed(p);
    written->record.mismatches += p->record.mismatches;
    free(p->path);
    free(p);
}

/* Collective: notes how far each task came when a stonewall ended a write early. */
static void remember_written(struct phase *p)
{
    struct data_run *run = p->run;
    const struct comm *c = &run->comm;
    int64_t cut = p->record.deadline_hit;
    comm_reduce_int(c, &cut, 1, REDUCE_MAX);
    run->written_random = p->random;
    if (cut) {
        comm_gather(c, &p->record.operations, sizeof p->record.operations, run->written);
        comm_bcast(c, run->written, (size_t)c->size * sizeof *run->written, 0);
    } else {
        for (int i = 0; i < c->size; i++)
            run->written[i] = -1;
    }
}

static void note_mismatches(struct phase *p)
{
    if (p->record.mismatches)
        failure_note(&p->run->failure, "verify", p->path, 0, "%lld of %lld operations on rank %d found wrong data",
                     (long long)p->record.mismatches, (long long)p->record.operations, p->run->comm.rank);
}

static void set_up(struct phase *p, struct data_run *run, int repetition, int index, bool first)
{
    const struct phase_plan *plan = &run->o->phases[index];
    p->run = run;
    p->repetition = repetition;
    p->index = index;
    p->access = plan->access;
    p->random = plan->random;
    p->first = first;
    p->task_offset = plan->access == ACCESS_READ ? reorder_offset(run, run->comm.rank, repetition) : 0;
    p->target = (run->comm.rank + p->task_offset) % run->comm.size;
    p->path = data_path(run->o, p->target);
    if (!p->path)
        failure_note(&run->failure, "prepare", NULL, ENOMEM, NULL);
}

static bool run_prepared(struct phase *p, const char *name)
{
    struct data_run *run = p->run;
    const struct data_options *o = run->o;
    struct file file;
    if (p->access == ACCESS_WRITE && p->path && keeps_file(run))
        make_room(p);
    if (p->access == ACCESS_READ && p->path)
        look_at_cache(p);
    choose_seed(p);
    if (o->delay)
        sleep_ns(o->delay * NS_PER_S);
    if (failure_agree(&run->failure, &run->comm, name))
        return false;
    if (p->access == ACCESS_WRITE && p->first && !o->use_existing)
        run->last = LAST_NONE;
    p->history = history_name(p->access, run->last);
    if (o->prepare_only)
        return result_prepared(p);

    prepare_transfer(p, &file);
    timed(p);
    run->last = p->access == ACCESS_WRITE ? LAST_WRITE : LAST_READ;
    if (failure_agree(&run->failure, &run->comm, name))
        return false;

    struct stat st;
    if (keeps_file(run) && stat(p->path, &st) == 0)
        p->record.file_size = st.st_size;
    if (p->access == ACCESS_WRITE) {
        remember_written(p);
        if (o->check_write) {
            check_written(p);
            if (failure_agree(&run->failure, &run->comm, name))
                return false;
        }
    }
    if (!result_phase(p))
        return false;
    note_mismatches(p);
    return !failure_agree(&run->failure, &run->comm, name);
}

bool phase_run(struct data_run *run, int repetition, int index, bool first)
{
    struct phase *p = calloc(1, sizeof *p); /* histograms and a time series: too large for a stack */
    int64_t missing = !p;
    comm_reduce_int(&run->comm, &missing, 1, REDUCE_MAX);
    if (missing || !p) {
        free(p);
        failure_note(&run->failure, "prepare", NULL, ENOMEM, NULL);
        return !failure_agree(&run->failure, &run->comm, "prepare");
    }
    set_up(p, run, repetition, index, first);
    bool good = run_prepared(p, p->access == ACCESS_WRITE ? "write" : "read");
    free(p->behind);
    free(p->path);
    free(p);
    return good;
}
