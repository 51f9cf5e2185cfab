/*
 * HDF5, as IOR writes it: a one-dimensional data set for each segment, in which each task has one block, of
 * 8-byte integers. Under MPI every file goes through MPI-IO, as by IOR; forked processes, who have a file each,
 * use HDF5's driver for POSIX.
 *
 * Unlike IOR, all data sets are made or opened with the file: making one is collective, and tasks that a
 * stonewall ended at different points would wait for each other.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "comm.h"
#include "failure.h"
#include "hdf5_library.h"
#include "options_data.h"
#include "transfer.h"

enum { ELEMENT = 8, SEGMENTS_MOST = 65536 };

struct handle {
    hid_t file, memory, space, transfer;
    hid_t *sets; /* one for each segment */
    bool posix;  /* no MPI-IO below */
};

static const char *hdf5_check(const struct data_options *o)
{
    static char text[600];
    char problem[512];
    if (o->direct)
        return "--posix.odirect: needs -a POSIX";
    if (o->queue_depth > 1)
        return "--queue-depth: more than 1 needs -a POSIX";
    if (o->preallocate)
        return "--mpiio.preallocate: needs -a MPIIO";
    if (o->file_view)
        return "--mpiio.useFileView: needs -a MPIIO";
    if (o->random && o->collective)
        return "-z: random offsets cannot be combined with collective HDF5 (-c)";
    if (o->segments > SEGMENTS_MOST)
        return "-s: at most 65536 with -a HDF5, which has a data set for each";
    if (o->sync_each && !o->file_per_process && (o->random || o->stonewall > 0))
        return "-Y: H5Fflush on a shared file is collective, so every task must make the same number of "
               "transfers: not with -z or -D";
    if (o->prepare_only)
        return NULL; /* nothing goes through HDF5 */
    const struct hdf5 *h5 = hdf5_load(o->hdf5_library, problem, sizeof problem);
    if (!h5) {
        snprintf(text, sizeof text, "-a HDF5: %s; name one with --hdf5.library", problem);
        return text;
    }
    if (comm_is_mpi() && !h5->parallel) {
        snprintf(text, sizeof text,
                 "-a HDF5: iokernel-mpi needs an HDF5 library that is built with its own MPI, and %s is not; name one "
                 "with --hdf5.library", h5->version);
        return text;
    }
    if (!comm_is_mpi() && (o->collective || !o->file_per_process))
        return o->collective ? "-c: collective HDF5 needs iokernel-mpi" : "-a HDF5: a file of all tasks needs iokernel-mpi; use -F";
    return NULL;
}

static int explain(struct file *f)
{
    return hdf5_explain(f->problem, sizeof f->problem);
}

/* Data sets lie one after the other, each with a block of every task of the file. */
static int64_t set_bytes(const struct file *f)
{
    return f->options->block * (f->options->file_per_process ? 1 : f->comm->size);
}

static int make_lists(struct file *f, struct handle *h, hid_t *access)
{
    const struct hdf5 *h5 = hdf5_loaded();
    *access = h5->H5Pcreate(*h5->file_access);
    h->transfer = h5->H5Pcreate(*h5->dataset_transfer);
    h->posix = !h5->parallel;
    if (*access < 0 || h->transfer < 0)
        return explain(f);
#ifdef IOKERNEL_MPI
    if (h5->parallel) {
        const struct data_options *o = f->options;
        MPI_Comm comm = o->file_per_process ? MPI_COMM_SELF : *(MPI_Comm *)comm_mpi_handle(f->comm);
        if (h5->H5Pset_fapl_mpio(*access, comm, MPI_INFO_NULL) < 0 ||
            h5->H5Pset_dxpl_mpio(h->transfer, o->collective) < 0)
            return explain(f);
    }
#endif
    return 0;
}

/* A file that a phase before this one wrote is used again, as by the other interfaces; all tasks decide alike. */
static bool is_there(const struct file *f, const char *path)
{
    int64_t there = access(path, F_OK) == 0;
    if (!f->options->file_per_process)
        comm_bcast(f->comm, &there, sizeof there, 0);
    return there;
}

static int open_set(struct file *f, struct handle *h, int64_t number, bool make)
{
    const struct hdf5 *h5 = hdf5_loaded();
    char name[64];
    snprintf(name, sizeof name, "Dataset-0000.%04lld", (long long)number);
    h->sets[number] = make ? h5->H5Dcreate2(h->file, name, *h5->long_long, h->space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                           : h5->H5Dopen2(h->file, name, H5P_DEFAULT);
    if (h->sets[number] < 0)
        return explain(f);
    if (make)
        return 0;
    hid_t space = h5->H5Dget_space(h->sets[number]);
    long long elements = space < 0 ? -1 : h5->H5Sget_simple_extent_npoints(space);
    if (space >= 0)
        h5->H5Sclose(space);
    if (elements == set_bytes(f) / ELEMENT)
        return 0;
    snprintf(f->problem, sizeof f->problem, "%s has %lld elements of 8 bytes, the test has %lld", name, elements,
             (long long)(set_bytes(f) / ELEMENT));
    return EINVAL;
}

/* Closes what is open; false when the file could not be closed. */
static bool put_away(struct file *f, struct handle *h)
{
    const struct hdf5 *h5 = hdf5_loaded();
    bool good = true;
    for (int64_t i = 0; h->sets && i < f->options->segments; i++)
        if (h->sets[i] >= 0)
            good = h5->H5Dclose(h->sets[i]) >= 0 && good;
    if (h->space >= 0)
        h5->H5Sclose(h->space);
    if (h->memory >= 0)
        h5->H5Sclose(h->memory);
    if (h->transfer >= 0)
        h5->H5Pclose(h->transfer);
    if (h->file >= 0)
        good = h5->H5Fclose(h->file) >= 0 && good;
    return good;
}

static void forget(struct file *f, struct handle *h)
{
    free(h->sets);
    free(h);
    f->private = NULL;
}

static int open_all(struct file *f, struct handle *h, const char *path, enum access access, hid_t list)
{
    const struct hdf5 *h5 = hdf5_loaded();
    bool make = access == ACCESS_WRITE && !is_there(f, path);
    hsize_t whole = (hsize_t)(set_bytes(f) / ELEMENT), start = 0, count = 1;
    /* In memory a transfer is the head of a space with as many elements as it has bytes, as IOR's: to MPI-IO it is
     * scattered then, and a collective write reads each range before it writes it. */
    hsize_t room = (hsize_t)f->options->transfer, piece = room / ELEMENT;
    h->file = make ? h5->H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list)
                   : h5->H5Fopen(path, access == ACCESS_WRITE ? H5F_ACC_RDWR : H5F_ACC_RDONLY, list);
    if (h->file < 0)
        return explain(f);
    h->space = h5->H5Screate_simple(1, &whole, NULL);
    h->memory = h5->H5Screate_simple(1, &room, NULL);
    if (h->space < 0 || h->memory < 0 ||
        h5->H5Sselect_hyperslab(h->memory, H5S_SELECT_SET, &start, NULL, &count, &piece) < 0)
        return explain(f);
    for (int64_t i = 0; i < f->options->segments; i++) {
        int error = open_set(f, h, i, make);
        if (error)
            return error;
    }
    return 0;
}

static int hdf5_open(struct file *f, const char *path, enum access access)
{
    int64_t segments = f->options->segments;
    struct handle *h = malloc(sizeof *h);
    if (!h)
        return ENOMEM;
    *h = (struct handle){.file = -1, .memory = -1, .space = -1, .transfer = -1};
    h->sets = malloc((size_t)segments * sizeof *h->sets);
    for (int64_t i = 0; h->sets && i < segments; i++)
        h->sets[i] = -1;
    hid_t list = -1;
    int error = h->sets ? make_lists(f, h, &list) : ENOMEM;
    if (!error)
        error = open_all(f, h, path, access, list);
    if (list >= 0)
        hdf5_loaded()->H5Pclose(list);
    if (error) {
        put_away(f, h);
        forget(f, h);
        return error;
    }
    f->private = h;
    return 0;
}

static int64_t hdf5_transfer(struct file *f, enum access access, void *data, int64_t length, int64_t offset)
{
    const struct hdf5 *h5 = hdf5_loaded();
    struct handle *h = f->private;
    int64_t set = offset / set_bytes(f);
    hsize_t start = (hsize_t)(offset % set_bytes(f) / ELEMENT), count = 1, block = (hsize_t)(length / ELEMENT);
    if (h5->H5Sselect_hyperslab(h->space, H5S_SELECT_SET, &start, NULL, &count, &block) < 0)
        return -explain(f);
    herr_t result = access == ACCESS_WRITE
                        ? h5->H5Dwrite(h->sets[set], *h5->long_long, h->memory, h->space, h->transfer, data)
                        : h5->H5Dread(h->sets[set], *h5->long_long, h->memory, h->space, h->transfer, data);
    return result < 0 ? -explain(f) : length;
}

/* H5Fflush calls MPI_File_sync on MPI-IO; HDF5's driver for POSIX leaves the data with the system. */
static int hdf5_sync(struct file *f)
{
    const struct hdf5 *h5 = hdf5_loaded();
    struct handle *h = f->private;
    void *descriptor = NULL;
    if (h5->H5Fflush(h->file, H5F_SCOPE_LOCAL) < 0)
        return explain(f);
    if (!h->posix)
        return 0;
    if (h5->H5Fget_vfd_handle(h->file, H5P_DEFAULT, &descriptor) < 0)
        return explain(f);
    while (fsync(*(int *)descriptor) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static int hdf5_close(struct file *f)
{
    struct handle *h = f->private;
    int error = put_away(f, h) ? 0 : explain(f);
    forget(f, h);
    return error;
}

const struct backend backend_hdf5 = {
    .name = "HDF5",
    .framed = true,
    .check = hdf5_check,
    .open = hdf5_open,
    .transfer = hdf5_transfer,
    .sync = hdf5_sync,
    .close = hdf5_close,
    .loop = transfer_loop,
};
