/* Beginning to stage for a file that MPI processes write to. */
#include "config.h"
#include "driver.h"
#include "mpi_methods.h"
#include "reasons.h"
#include "session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define NFS    0x6969 /* NFS_SUPER_MAGIC: MPI locks files there around what it writes */

/* What HDF5 has of the open file: its driver's part begins with it, and goes on with the MPI_File whose place HDF5 tells.
   NULL where any of it is not as expected. */
static H5FD_t *driver_file(void *under, hid_t vol, hid_t fapl, hid_t dxpl)
{
    void                            *handle = NULL;
    H5VL_native_file_optional_args_t get    = {.get_vfd_handle = {H5P_DEFAULT, &handle}};
    H5VL_optional_args_t             args   = {H5VL_NATIVE_FILE_GET_VFD_HANDLE, &get};

    if (h5.H5VLfile_optional(under, vol, &args, dxpl, NULL) < 0 || !handle)
        return NULL;
    H5FD_t *file = (H5FD_t *)((char *)handle - sizeof(H5FD_t));
    if (file->driver_id != h5.H5Pget_driver(fapl) || !file->cls || file->cls->version != H5FD_CLASS_VERSION ||
        strcmp(file->cls->name, "mpio") || file->fileno != cv_file_number(under, vol, dxpl) || !cv_methods_are_native(file->cls))
        return NULL;
    return file;
}

/* The file as this node knows it, for the thread that migrates; -1 where that would not do as MPI does. */
static int open_base(void *under, hid_t vol, hid_t dxpl, char path[PATH_MAX], struct stat *now)
{
    char                 name[PATH_MAX];
    struct statfs        system;
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_NAME};

    get.args.get_name = (H5VL_file_get_name_args_t){H5I_FILE, sizeof name, name, NULL};
    size_t length     = 0;
    get.args.get_name.file_name_len = &length;
    if (h5.H5VLfile_get(under, vol, &get, dxpl, NULL) < 0 || !length || length >= sizeof name || !realpath(name, path))
        return -1;
    int fd = open(path, O_RDWR | O_CLOEXEC); /* to read: writes to part of a page begin with that in places */
    if (fd >= 0 && (fstat(fd, now) || !S_ISREG(now->st_mode) || fstatfs(fd, &system) || system.f_type == NFS)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool written_together(hid_t fapl)
{
    bool collective = true; /* metadata: MPI then rewrites what lies between them */

    return mpi.Pget_coll_metadata_write(fapl, &collective) < 0 || collective;
}

/* Makes this process's part. Returns whether there is one; else `*why`. */
static bool begin(struct cv_writer *writer, void *under, hid_t vol, hid_t fapl, hid_t dxpl, const char **why)
{
    struct stat      now;
    struct cv_store *store = cv_session_store();

    *why = "there is no node-local folder";
    if (!store)
        return false;
    *why = "its metadata are written by all processes together (H5Pset_coll_metadata_write)";
    if (written_together(fapl))
        return false;
    *why         = "it is open already, or HDF5's MPI driver is not as expected";
    writer->file = driver_file(under, vol, fapl, dxpl);
    if (!writer->file || cv_writer_of_driver(writer->file))
        return false;
    *why         = "it lies on NFS, or cannot be opened without MPI";
    writer->base = open_base(under, vol, dxpl, writer->path, &now);
    if (writer->base < 0)
        return false;
    writer->device = now.st_dev, writer->inode = now.st_ino;
    *why          = "there is no memory for it";
    writer->stage = cv_stage_open_shared(store, writer->path, writer->base, now.st_dev, now.st_ino);
    return writer->stage && (writer->areas = cv_areas_make());
}

static bool expose(struct cv_writer *writer)
{
    void *words = NULL;

    mpi.Comm_set_errhandler(writer->comm, CV_ERRORS_RETURN);
    if (mpi.Comm_rank(writer->comm, &writer->rank) || mpi.Comm_size(writer->comm, &writer->size) ||
        !(writer->votes = calloc((size_t)writer->size, CV_VOTE_BYTES)) ||
        mpi.Win_allocate(CV_STAGE_WORDS * sizeof(uint64_t), 1, CV_INFO_NULL, writer->comm, &words, &writer->window))
        return false;
    mpi.Win_set_errhandler(writer->window, CV_ERRORS_RETURN);
    mpi.Win_lock_all(CV_NOCHECK, writer->window);
    writer->emptied = words;
    for (int i = 0; i < CV_STAGE_WORDS; i++)
        atomic_store(writer->emptied + i, 0);
    mpi.Win_sync(writer->window);
    mpi.Barrier(writer->comm);
    return true;
}

/* The processes do not stage for a file: the first one says so. */
static void not_staged(cv_comm comm, const char *name, const char *why)
{
    int rank = 0;

    if (!mpi.Comm_rank(comm, &rank))
        cv_because(name, cv_not_staged, why, rank == 0);
}

void cv_writer_open(const char *name, void *under, hid_t vol, hid_t fapl, bool stages, hid_t dxpl)
{
    const char       *why    = "another process of the program cannot stage for it";
    struct cv_writer *writer = calloc(1, sizeof *writer);
    cv_comm           comm   = CV_COMM_NULL;
    char              log[128];

    if (!cv_mpi_usable() || mpi.Pget_fapl_mpio(fapl, &comm, NULL) < 0) {
        if (stages)
            cv_because(name, cv_not_staged, "this MPI library is none of MPICH's binary interface", true);
        free(writer);
        return;
    }
    hid_t errors = cv_errors_keep();
    if (writer)
        writer->base = -1;
    bool mine = stages && writer && begin(writer, under, vol, fapl, dxpl, &why);
    if (mine)
        why = "another process of the program cannot stage for it";
    if (cv_mpi_all(comm, mine)) {
        writer->comm = comm;
        if (cv_mpi_all(comm, expose(writer))) {
            writer->independent = cv_mpi_all(comm, cv_config.independent);
            cv_methods_lend(writer);
            cv_writer_add(writer);
            writer = NULL, comm = CV_COMM_NULL;
        }
    }
    if (stages && comm != CV_COMM_NULL)
        not_staged(comm, name, why);
    if (writer && writer->stage)
        cv_stage_close(writer->stage, log, sizeof log);
    if (writer && writer->base >= 0)
        close(writer->base);
    if (writer) {
        cv_areas_free(writer->areas);
        free(writer->votes);
    }
    free(writer);
    if (comm != CV_COMM_NULL)
        mpi.Comm_free(&comm);
    cv_errors_back(errors);
}

