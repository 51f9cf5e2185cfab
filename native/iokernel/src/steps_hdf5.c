/*
 * What the programs do with HDF5. All tasks share one file; none of them knows of a connector that HDF5 may have
 * loaded between them and it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "hdf5_library.h"
#include "residency.h"
#include "steps.h"

enum { SAMPLE_VALUES = 251 }; /* a prime: a sample's number shows in its bytes, whatever the batch */

static void fail(struct steps_run *run, const char *operation)
{
    char problem[256];
    int error = hdf5_explain(problem, sizeof problem);
    if (problem[0])
        failure_note(&run->failure, operation, run->o->path, error, "%s", problem);
    else
        failure_note(&run->failure, operation, run->o->path, error, NULL);
}

/* Property lists for a file that all tasks share, and for moving its data. */
struct lists {
    hid_t access, transfer;
};

static struct lists lists_make(struct steps_run *run)
{
    const struct hdf5 *h5 = hdf5_loaded();
    struct lists l = {h5->H5Pcreate(*h5->file_access), h5->H5Pcreate(*h5->dataset_transfer)};
    bool good = l.access >= 0 && l.transfer >= 0;
#ifdef IOKERNEL_MPI
    MPI_Comm *comm = comm_mpi_handle(run->comm);
    good = good && h5->H5Pset_fapl_mpio(l.access, *comm, MPI_INFO_NULL) >= 0 &&
           h5->H5Pset_dxpl_mpio(l.transfer, run->o->collective) >= 0;
#endif
    if (!good)
        fail(run, "H5Pcreate");
    return l;
}

static void lists_close(struct lists l)
{
    const struct hdf5 *h5 = hdf5_loaded();
    if (l.access >= 0)
        h5->H5Pclose(l.access);
    if (l.transfer >= 0)
        h5->H5Pclose(l.transfer);
}

/* Closes what was opened; a failure to do so is one of the run. */
static void closed(struct steps_run *run, hid_t what, herr_t (*close)(hid_t), const char *operation)
{
    if (what >= 0 && close(what) < 0)
        fail(run, operation);
}

static double pause_for(double wanted)
{
    if (wanted <= 0)
        return 0;
    int64_t asleep = clock_ns();
    sleep_ns((int64_t)(wanted * 1e9));
    return seconds(clock_ns() - asleep);
}

/* One data set, in which each task writes its part. */
static void write_property(struct steps_run *run, hid_t group, int64_t number, struct lists l)
{
    const struct hdf5 *h5 = hdf5_loaded();
    hsize_t mine = (hsize_t)run->o->dataset / 4, whole = mine * (hsize_t)run->comm->size;
    hsize_t start = mine * (hsize_t)run->comm->rank, one = 1;
    char name[64];
    snprintf(name, sizeof name, "property%lld", (long long)number);
    data_prepare(&run->data, run->buffer, run->o->dataset, run->written);
    run->written += run->o->dataset;
    hid_t space = h5->H5Screate_simple(1, &whole, NULL), memory = h5->H5Screate_simple(1, &mine, NULL);
    hid_t set = h5->H5Dcreate2(group, name, *h5->native_float, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (set < 0)
        fail(run, "H5Dcreate");
    else if (h5->H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &one, &mine) < 0 ||
             h5->H5Dwrite(set, *h5->native_float, memory, space, l.transfer, run->buffer) < 0)
        fail(run, "H5Dwrite");
    closed(run, set, h5->H5Dclose, "H5Dclose");
    closed(run, memory, h5->H5Sclose, "H5Sclose");
    closed(run, space, h5->H5Sclose, "H5Sclose");
}

void steps_checkpoint(struct steps_run *run, struct steps_record *record)
{
    const struct hdf5 *h5 = hdf5_loaded();
    const struct steps_options *o = run->o;
    struct lists l = lists_make(run);
    comm_barrier(run->comm);
    run->began = clock_epoch();
    int64_t begun = clock_ns();
    hid_t file = h5->H5Fcreate(o->path, H5F_ACC_TRUNC, H5P_DEFAULT, l.access);
    if (file < 0)
        fail(run, "H5Fcreate");
    for (int64_t step = 0; step < o->steps && !failure_agree(&run->failure, run->comm, "checkpoint"); step++) {
        char name[64];
        snprintf(name, sizeof name, "step%lld", (long long)step);
        hid_t group = h5->H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (group < 0)
            fail(run, "H5Gcreate");
        for (int64_t i = 0; i < o->datasets && group >= 0; i++)
            write_property(run, group, i, l);
        closed(run, group, h5->H5Gclose, "H5Gclose");
        record->compute += pause_for(o->compute);
    }
    closed(run, file, h5->H5Fclose, "H5Fclose");
    record->total = seconds(clock_ns() - begun);
    record->bytes = o->steps * o->datasets * o->dataset;
    lists_close(l);
}

/* Samples begin to end of batch `number`. */
static void batch_of(const struct steps_options *o, int64_t number, hsize_t start[2], hsize_t size[2])
{
    int64_t first = number * o->batch, end = first + o->batch < o->count ? first + o->batch : o->count;
    start[0] = (hsize_t)first;
    start[1] = 0;
    size[0] = (hsize_t)(end - first);
    size[1] = (hsize_t)o->sample;
}

static unsigned char value_of(hsize_t sample)
{
    return (unsigned char)(sample % SAMPLE_VALUES);
}

/* Moves one batch between the buffer and the file. */
static herr_t move_batch(struct steps_run *run, hid_t set, hid_t space, int64_t number, struct lists l, bool write)
{
    const struct hdf5 *h5 = hdf5_loaded();
    hsize_t start[2], size[2], one[2] = {1, 1};
    batch_of(run->o, number, start, size);
    hid_t memory = h5->H5Screate_simple(2, size, NULL);
    herr_t done = h5->H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, one, size);
    if (memory >= 0 && done >= 0)
        done = write ? h5->H5Dwrite(set, *h5->native_uchar, memory, space, l.transfer, run->buffer)
                     : h5->H5Dread(set, *h5->native_uchar, memory, space, l.transfer, run->buffer);
    if (memory >= 0)
        h5->H5Sclose(memory);
    return memory < 0 ? -1 : done;
}

/* The first place of this task's part of so many, and the end of it. */
static int64_t part_of(const struct comm *c, int64_t count, int rank)
{
    return count * rank / c->size;
}

void steps_samples(struct steps_run *run, struct steps_record *record)
{
    const struct hdf5 *h5 = hdf5_loaded();
    const struct steps_options *o = run->o;
    struct lists l = lists_make(run);
    hsize_t whole[2] = {(hsize_t)o->count, (hsize_t)o->sample};
    comm_barrier(run->comm);
    run->began = clock_epoch();
    int64_t begun = clock_ns();
    hid_t file = h5->H5Fcreate(o->path, H5F_ACC_TRUNC, H5P_DEFAULT, l.access);
    hid_t space = h5->H5Screate_simple(2, whole, NULL);
    hid_t set = file < 0 ? -1 : h5->H5Dcreate2(file, "samples", *h5->native_uchar, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (set < 0)
        fail(run, file < 0 ? "H5Fcreate" : "H5Dcreate");
    if (!failure_agree(&run->failure, run->comm, "samples"))
        for (int64_t b = part_of(run->comm, steps_batches(o), run->comm->rank);
             b < part_of(run->comm, steps_batches(o), run->comm->rank + 1) && !run->failure.set; b++) {
            hsize_t start[2], size[2];
            batch_of(o, b, start, size);
            for (hsize_t i = 0; i < size[0]; i++)
                memset(run->buffer + i * size[1], value_of(start[0] + i), size[1]);
            if (move_batch(run, set, space, b, l, true) < 0)
                fail(run, "H5Dwrite");
            record->bytes += (int64_t)(size[0] * size[1]);
        }
    closed(run, set, h5->H5Dclose, "H5Dclose");
    closed(run, space, h5->H5Sclose, "H5Sclose");
    closed(run, file, h5->H5Fclose, "H5Fclose");
    record->total = seconds(clock_ns() - begun);
    lists_close(l);
}

/* SplitMix64 (Steele, Lea and Flood, 2014): the same numbers on every task. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The order in which all tasks together go through the batches: in order, or shuffled anew for each epoch. */
static void order_batches(const struct steps_options *o, int64_t epoch, int64_t *order)
{
    int64_t count = steps_batches(o);
    uint64_t state = (uint64_t)o->seed * 1000003 + (uint64_t)epoch;
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; o->random && i > 0; i--) {
        int64_t other = (int64_t)(draw(&state) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* Whether each sample in the buffer is the one that was asked for, by its first and its last byte. */
static bool right(const struct steps_run *run, int64_t number)
{
    hsize_t start[2], size[2];
    batch_of(run->o, number, start, size);
    for (hsize_t i = 0; i < size[0]; i++) {
        const unsigned char *sample = (const unsigned char *)run->buffer + i * size[1];
        if (sample[0] != value_of(start[0] + i) || sample[size[1] - 1] != value_of(start[0] + i))
            return false;
    }
    return true;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void epoch_of(struct steps_run *run, hid_t set, hid_t space, const int64_t *order, struct lists l,
                     struct steps_record *record)
{
    const struct steps_options *o = run->o;
    int64_t count = steps_batches(o), end = part_of(run->comm, count, run->comm->rank + 1);
    double cpu = cpu_seconds();
    for (int64_t i = part_of(run->comm, count, run->comm->rank); i < end && !run->failure.set; i++) {
        hsize_t start[2], size[2];
        int64_t begun = clock_ns();
        if (move_batch(run, set, space, order[i], l, false) < 0) {
            fail(run, "H5Dread");
            return;
        }
        record->reading += seconds(clock_ns() - begun);
        batch_of(o, order[i], start, size);
        record->bytes += (int64_t)(size[0] * size[1]);
        if (!right(run, order[i]))
            failure_note(&run->failure, "H5Dread", o->path, EIO, "samples %lld to %lld are wrong", (long long)start[0],
                         (long long)(start[0] + size[0] - 1));
        pause_for(o->compute);
    }
    record->cpu = cpu_seconds() - cpu;
}

/*
 * Drops the file from the page cache, and waits until a connector can take it for unchanged: it tells by the time of
 * the last change, which file systems round to seconds.
 */
static void evict(struct steps_run *run)
{
    struct stat st;
    int error = residency_evict(run->o->path);
    if (error)
        failure_note(&run->failure, "evict", run->o->path, error, NULL);
    if (run->comm->rank == 0 && stat(run->o->path, &st) == 0) {
        double left = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9 + 2.2 - clock_epoch();
        pause_for(left < 2.2 ? left : 2.2);
    }
}

void steps_stream(struct steps_run *run, struct steps_record *records)
{
    const struct hdf5 *h5 = hdf5_loaded();
    const struct steps_options *o = run->o;
    struct lists l = lists_make(run);
    int64_t *order = malloc((size_t)steps_batches(o) * sizeof *order);
    if (!order)
        failure_note(&run->failure, "allocate", NULL, ENOMEM, NULL);
    if (o->evict)
        evict(run);
    hid_t file = -1, set = -1, space = -1;
    if (!failure_agree(&run->failure, run->comm, "prepare")) {
        run->began = clock_epoch();
        file = h5->H5Fopen(o->path, H5F_ACC_RDONLY, l.access);
        set = file < 0 ? -1 : h5->H5Dopen2(file, "samples", H5P_DEFAULT);
        space = set < 0 ? -1 : h5->H5Dget_space(set);
        if (space < 0)
            fail(run, file < 0 ? "H5Fopen" : "H5Dopen");
        else if (h5->H5Sget_simple_extent_npoints(space) != o->count * o->sample)
            failure_note(&run->failure, "H5Dopen", o->path, EINVAL, "samples: not %lld samples of %lld bytes",
                         (long long)o->count, (long long)o->sample);
    }
    for (int64_t epoch = 0; epoch < o->epochs && !failure_agree(&run->failure, run->comm, "stream") && order; epoch++) {
        order_batches(o, epoch, order);
        epoch_of(run, set, space, order, l, &records[epoch]);
    }
    closed(run, space, h5->H5Sclose, "H5Sclose");
    closed(run, set, h5->H5Dclose, "H5Dclose");
    closed(run, file, h5->H5Fclose, "H5Fclose");
    lists_close(l);
    free(order);
}
