#include "mpi_writer.h"
#include "config.h"
#include "driver.h"
#include "reasons.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#define NFS    0x6969 /* NFS_SUPER_MAGIC: MPI locks files there around what it writes */
#define LOOKS  UINT64_C(200000) /* ns between looks at another process's counter */

static struct cv_writer *writers;

/* ---- The driver's methods. ---- */

/* HDF5's driver, with `close` replaced, and while data are staged `write` too, without the calls that take more than
   one piece. `native` is the driver as it was. */
static const H5FD_class_t *native;
static H5FD_class_t        watching, staging;

static struct cv_writer *of_file(const H5FD_t *file)
{
    struct cv_writer *writer = writers;

    while (writer && writer->file != file)
        writer = writer->next;
    return writer;
}

static void forget(struct cv_writer *writer)
{
    struct cv_writer **at = &writers;

    while (*at != writer)
        at = &(*at)->next;
    *at = writer->next;
    cv_areas_free(writer->areas);
    free(writer->votes);
    free(writer);
}

/* All processes do this, in MPI_Finalize at the latest. Their data are there: closing began with settling. */
static herr_t close_file(H5FD_t *file)
{
    struct cv_writer *writer = of_file(file);
    char              log[128];
    int               bad = 0, over = 0;

    file->cls = native;
    if (writer) {
        bad = cv_stage_close(writer->stage, log, sizeof log);
        if (bad)
            CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'; they are kept "
                           "in log %s: make room, then run `tiercel cache replay`", errno, strerror(errno), log);
        close(writer->base);
        mpi.Finalized(&over);
        if (!over) {
            mpi.Win_unlock_all(writer->window);
            mpi.Win_free(&writer->window);
            mpi.Comm_free(&writer->comm);
        }
        forget(writer);
    }
    hid_t  errors  = bad ? h5.H5Eget_current_stack() : H5I_INVALID_HID;
    herr_t outcome = native->close(file);
    if (errors >= 0)
        h5.H5Eset_current_stack(errors);
    return bad ? -1 : outcome;
}

static herr_t stage_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *data)
{
    struct cv_writer *writer = of_file(file);

    if (!writer || type != H5FD_MEM_DRAW)
        return native->write(file, type, dxpl, address, size, data);
    if (!cv_stage_write(writer->stage, true, address, data, size))
        return 0;
    CV_WRITE_ERROR("file write failed: errno = %d, error message = '%s', total write size = %zu, offset = %llu", errno,
                   strerror(errno), size, (unsigned long long)address);
    return -1;
}

static void learn(const H5FD_class_t *driver)
{
    native   = driver;
    watching = *driver;
    watching.close = close_file;
    staging  = watching;
    staging.write = stage_write;
    staging.write_vector = NULL, staging.write_selection = NULL;
}

void cv_writer_staging(struct cv_writer *writer, bool begins)
{
    writer->file->cls = begins ? &staging : &watching;
}

/* ---- Opening. ---- */

static unsigned long number_of(void *under, hid_t vol, hid_t dxpl)
{
    unsigned long        number = 0;
    H5VL_file_get_args_t get    = {.op_type = H5VL_FILE_GET_FILENO};

    get.args.get_fileno.fileno = &number;
    return h5.H5VLfile_get(under, vol, &get, dxpl, NULL) < 0 ? 0 : number;
}

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
        strcmp(file->cls->name, "mpio") || file->fileno != number_of(under, vol, dxpl) || (native && file->cls != native))
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
    if (!writer->file || of_file(writer->file))
        return false;
    *why         = "it lies on NFS, or cannot be opened without MPI";
    writer->base = open_base(under, vol, dxpl, writer->path, &now);
    if (writer->base < 0)
        return false;
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
        mpi.Win_allocate(sizeof(uint64_t), 1, CV_INFO_NULL, writer->comm, &words, &writer->window))
        return false;
    mpi.Win_set_errhandler(writer->window, CV_ERRORS_RETURN);
    mpi.Win_lock_all(CV_NOCHECK, writer->window);
    writer->emptied = words;
    atomic_store(writer->emptied, 0);
    mpi.Win_sync(writer->window);
    mpi.Barrier(writer->comm);
    return true;
}

void cv_writer_because(const struct cv_writer *writer, const char *why)
{
    cv_because(writer->path, cv_not_staged, why, writer->rank == 0);
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
            if (!native)
                learn(writer->file->cls);
            writer->independent = cv_mpi_all(comm, cv_config.independent);
            cv_writer_staging(writer, false);
            writer->next = writers;
            writers      = writer;
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

/* ---- Finding. ---- */

bool cv_writers_any(void)
{
    return writers;
}

struct cv_writer *cv_writer_of_number(unsigned long number)
{
    struct cv_writer *writer = writers;

    while (writer && writer->file->fileno != number)
        writer = writer->next;
    return writer;
}

struct cv_writer *cv_writer_of_file(struct cv_object *file, hid_t dxpl)
{
    return writers ? cv_writer_of_number(number_of(file->under, file->vol, dxpl)) : NULL;
}

struct cv_writer *cv_writer_of(struct cv_object *object, H5I_type_t type, hid_t dxpl)
{
    H5O_info2_t info;

    if (!writers)
        return NULL;
    if (type == H5I_FILE)
        return cv_writer_of_file(object, dxpl);
    return cv_object_info(object, type, dxpl, &info) ? cv_writer_of_number(info.fileno) : NULL;
}

/* ---- Settling and waiting. ---- */

int cv_writer_drain(struct cv_writer *writer)
{
    if (!cv_stage_drain(writer->stage))
        return 0;
    CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'", errno,
                   strerror(errno));
    return -1;
}

int cv_writer_settle(struct cv_writer *writer)
{
    if (writer->settled == writer->calls && !writer->independent)
        return 0;
    bool good = !cv_writer_drain(writer), whole = cv_mpi_all(writer->comm, good);
    if (whole) {
        writer->settled = writer->calls;
        writer->areas->owns = writer->areas->other = 0;
    } else if (good) {
        CV_WRITE_ERROR("data that another process staged could not be written to the file: see its error");
    }
    return whole ? 0 : -1;
}

int cv_writer_wait(struct cv_writer *writer, uint64_t call)
{
    for (int rank = 0; rank < writer->size; rank++) {
        uint64_t   there   = 0;
        cv_request request = CV_REQUEST_NULL;
        while (rank != writer->rank) {
            if (mpi.Rget(&there, 1, CV_UINT64, rank, 0, 1, CV_UINT64, writer->window, &request) ||
                mpi.Wait(&request, CV_STATUS_IGNORE))
                there = CV_STAGE_FAILED;
            if (there & CV_STAGE_FAILED) {
                CV_WRITE_ERROR("process %d could not write to the file what it had staged", rank);
                return -1;
            }
            if (there >= call)
                break;
            nanosleep(&(struct timespec){.tv_nsec = LOOKS}, NULL);
        }
    }
    return 0;
}

void cv_writers_stop(void)
{
    for (struct cv_writer *writer = writers; writer; writer = writer->next) {
        writer->off = true;
        cv_stage_drain(writer->stage); /* where it fails, the next flush says so */
    }
}
