/*
 * MPI-IO: explicit offsets, or a file view in which each task sees only its
 * own blocks; independent or collective.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "comm.h"
#include "failure.h"
#include "options_data.h"
#include "transfer.h"

struct handle {
    MPI_File file;
    MPI_Datatype element, view; /* of a file view */
};

static const char *mpiio_check(const struct data_options *o)
{
    if (o->direct)
        return "--posix.odirect: needs -a POSIX";
    if (o->queue_depth > 1)
        return "--queue-depth: more than 1 needs -a POSIX";
    if (o->transfer > INT_MAX)
        return "-t: at most 2147483647 bytes with -a MPIIO";
    if (o->random && o->collective)
        return "-z: random offsets cannot be combined with collective MPIIO (-c)";
    if (o->random && o->file_view)
        return "-z: random offsets cannot be combined with MPIIO file views";
    if (o->sync_each && !o->file_per_process && (o->random || o->stonewall > 0))
        return "-Y: MPI_File_sync on a shared file is collective, so every task must make the same number of "
               "transfers: not with -z or -D";
    return NULL;
}

/*
 * The errno that comes closest. MPI's classes are coarse (mpich calls a full
 * device "other I/O error"), so the system's words are looked for in its text;
 * where there are none, the last line of the text is kept as the message.
 */
static int explain(struct file *f, int code)
{
    static const struct {
        int class, error;
    } classes[] = {
        {MPI_ERR_NO_SPACE, ENOSPC}, {MPI_ERR_NO_SUCH_FILE, ENOENT}, {MPI_ERR_ACCESS, EACCES},
        {MPI_ERR_QUOTA, EDQUOT},    {MPI_ERR_READ_ONLY, EROFS},     {MPI_ERR_FILE_EXISTS, EEXIST},
        {MPI_ERR_NO_MEM, ENOMEM},
    };
    char text[MPI_MAX_ERROR_STRING] = "";
    int class, length = 0;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    f->problem[0] = '\0';
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].class == class)
            return classes[i].error;
    int named = error_in_words(text);
    if (named)
        return named;
    const char *last = strrchr(text, '\n');
    snprintf(f->problem, sizeof f->problem, "%s", last && last[1] ? last + 1 : text);
    return EIO;
}

static int set_view(struct file *f, struct handle *h)
{
    const struct data_options *o = f->options;
    /* without a file of its own, a task sees its block of each segment; the view repeats by itself */
    int per_block = (int)(o->block / o->transfer);
    int tasks = o->file_per_process ? 1 : f->comm->size, mine = o->file_per_process ? 0 : f->task;
    int whole[1] = {per_block * tasks}, part[1] = {per_block}, start[1] = {per_block * mine};
    int code = MPI_Type_contiguous((int)o->transfer, MPI_BYTE, &h->element);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(&h->element);
    if (code == MPI_SUCCESS)
        code = MPI_Type_create_subarray(1, whole, part, start, MPI_ORDER_C, h->element, &h->view);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(&h->view);
    if (code == MPI_SUCCESS)
        code = MPI_File_set_view(h->file, 0, h->element, h->view, "native", MPI_INFO_NULL);
    return code == MPI_SUCCESS ? 0 : explain(f, code);
}

static int mpiio_open(struct file *f, const char *path, enum access access)
{
    const struct data_options *o = f->options;
    struct handle *h = calloc(1, sizeof *h);
    if (!h)
        return ENOMEM;
    h->element = h->view = MPI_DATATYPE_NULL;
    MPI_Comm comm = o->file_per_process ? MPI_COMM_SELF : *(MPI_Comm *)comm_mpi_handle(f->comm);
    int mode = access == ACCESS_WRITE ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    int code = MPI_File_open(comm, path, mode | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL, &h->file);
    if (code != MPI_SUCCESS) {
        free(h);
        return explain(f, code);
    }
    f->private = h;
    if (access == ACCESS_WRITE && o->preallocate) {
        MPI_Offset size = o->block * o->segments * (o->file_per_process ? 1 : f->comm->size);
        code = MPI_File_preallocate(h->file, size);
        if (code != MPI_SUCCESS)
            return explain(f, code);
    }
    return o->file_view ? set_view(f, h) : 0;
}

/* In a view, offsets count the transfers of this task's own blocks. */
static MPI_Offset view_offset(const struct file *f, int64_t offset)
{
    const struct data_options *o = f->options;
    int tasks = o->file_per_process ? 1 : f->comm->size;
    int64_t segment = offset / (o->block * tasks), inside = offset % o->block;
    return segment * (o->block / o->transfer) + inside / o->transfer;
}

static int64_t mpiio_transfer(struct file *f, enum access access, void *data, int64_t length, int64_t offset)
{
    struct handle *h = f->private;
    bool collective = f->options->collective, view = f->options->file_view;
    for (;;) {
        MPI_Offset at = view ? view_offset(f, offset) : offset;
        MPI_Datatype type = view ? h->element : MPI_BYTE;
        int count = view ? 1 : (int)length, moved = 0, code;
        MPI_Status status;
        if (access == ACCESS_WRITE)
            code = collective ? MPI_File_write_at_all(h->file, at, data, count, type, &status)
                              : MPI_File_write_at(h->file, at, data, count, type, &status);
        else
            code = collective ? MPI_File_read_at_all(h->file, at, data, count, type, &status)
                              : MPI_File_read_at(h->file, at, data, count, type, &status);
        if (code != MPI_SUCCESS)
            return -explain(f, code);
        MPI_Get_elements(&status, MPI_BYTE, &moved);
        if (moved == length || moved == 0 || collective)
            return moved;
        /* the whole request again, as IOR does: a view cannot address a part of an element */
        if (++f->short_transfers > 10000)
            return moved;
    }
}

static int mpiio_sync(struct file *f)
{
    int code = MPI_File_sync(((struct handle *)f->private)->file);
    return code == MPI_SUCCESS ? 0 : explain(f, code);
}

static int mpiio_close(struct file *f)
{
    struct handle *h = f->private;
    int code = MPI_File_close(&h->file);
    if (h->view != MPI_DATATYPE_NULL)
        MPI_Type_free(&h->view);
    if (h->element != MPI_DATATYPE_NULL)
        MPI_Type_free(&h->element);
    free(h);
    f->private = NULL;
    return code == MPI_SUCCESS ? 0 : explain(f, code);
}

const struct backend backend_mpiio = {
    .name = "MPIIO",
    .check = mpiio_check,
    .open = mpiio_open,
    .transfer = mpiio_transfer,
    .sync = mpiio_sync,
    .close = mpiio_close,
    .loop = transfer_loop,
};
