#include "mpi_open.h"
#include "left.h"
#include "mpi_driver.h"
#include "mpi_peers.h"
#include "session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEPENDENT 0 /* H5FD_MPIO_INDEPENDENT and H5FD_MPIO_COLLECTIVE, of H5FDmpio.h */
#define COLLECTIVE  1

/* Whether this process has the file open for writing somehow: what HDF5 holds back of it is not in the file yet. */
static bool written_here(const struct stat *file)
{
    DIR *entries = opendir("/proc/self/fd");
    bool found   = false;

    if (!entries)
        return true;
    for (struct dirent *entry; !found && (entry = readdir(entries));) {
        struct stat open;
        int         fd    = atoi(entry->d_name);
        int         flags = entry->d_name[0] == '.' ? -1 : fcntl(fd, F_GETFL);
        found = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !fstat(fd, &open) && open.st_dev == file->st_dev &&
                open.st_ino == file->st_ino;
    }
    closedir(entries);
    return found;
}

static bool can_take(const char *name, hid_t vol)
{
    H5VL_class_value_t below = -1;
    struct stat        now;

    return h5.H5VLget_value(vol, &below) >= 0 && below == H5VL_NATIVE_VALUE && !stat(name, &now) &&
           S_ISREG(now.st_mode) && !access(name, R_OK) && !written_here(&now) && cv_session_store();
}

/* Opens the file by our driver in this process alone. Where the driver took `*parallel`, that becomes NULL: it is the
   driver's then, and is `*opened` while that has it. */
static void *open_here(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, struct cv_parallel **parallel,
                       struct cv_parallel **opened)
{
    hid_t mine = h5.H5Pcopy(fapl);
    void *file = NULL;

    if (mine >= 0 && !cv_mpi_driver_set(mine)) {
        cv_parallel_opening = *parallel;
        file                = h5.H5VLfile_open(name, flags, mine, dxpl, NULL);
        if (!cv_parallel_opening) { /* the driver took it, and freed it where it closed the file again */
            *opened   = cv_parallel_still(*parallel) ? *parallel : NULL;
            *parallel = NULL;
        }
        cv_parallel_opening = NULL;
    }
    if (mine >= 0)
        h5.H5Pclose(mine);
    return file;
}

/* What a killed program left for the file is on one node; its processes finish it, before any of the others goes on. */
static bool settle(cv_comm comm, const char *name)
{
    char why[PATH_MAX + 512] = "unable to open file: a killed program left data for it on the node of another process";
    bool settled             = !cv_left_settle(name, false, why, sizeof why);

    if (cv_mpi_all(comm, settled))
        return true;
    settled = settled || !cv_left_settle(name, false, why, sizeof why);
    if (cv_mpi_all(comm, settled))
        return true;
    CV_OPEN_ERROR("%s", why);
    return false;
}

void *cv_mpi_open(const char *name, unsigned flags, hid_t fapl, hid_t vol, bool read, hid_t dxpl, void **request)
{
    cv_comm comm = CV_COMM_NULL;
    void   *file = NULL;

    if (!cv_mpi_usable() || mpi.Pget_fapl_mpio(fapl, &comm, NULL) < 0)
        return h5.H5VLfile_open(name, flags, fapl, dxpl, request);
    if (!settle(comm, name)) {
        mpi.Comm_free(&comm);
        return NULL;
    }
    hid_t errors = cv_errors_keep();
    cv_peers_tidy(comm);
    struct cv_parallel *parallel = calloc(1, sizeof *parallel), *opened = NULL;
    read = read && parallel && !(flags & (H5F_ACC_RDWR | H5F_ACC_SWMR_READ)) && can_take(name, vol);
    if (cv_mpi_all(comm, read)) {
        parallel->comm = CV_COMM_NULL, parallel->info = CV_INFO_NULL;
        mpi.Pget_fapl_mpio(fapl, &parallel->comm, &parallel->info); /* duplicates both; the processes do so together */
        file = open_here(name, flags, fapl, dxpl, &parallel, &opened);
        if (parallel && parallel->comm != CV_COMM_NULL)
            mpi.Comm_free(&parallel->comm);
        if (parallel && parallel->info != CV_INFO_NULL)
            mpi.Info_free(&parallel->info);
        if (!cv_mpi_all(comm, file)) {
            if (file)
                h5.H5VLfile_close(file, vol, dxpl, NULL);
            file = NULL;
        } else {
            struct cv_reader *reader = opened ? opened->reader : NULL;
            struct cv_peers  *peers  = cv_peers_open(comm, reader ? cv_reader_copy(reader) : NULL);
            if (peers) {
                comm = CV_COMM_NULL; /* is theirs now */
                cv_reader_share(reader, peers);
            }
        }
    }
    free(parallel);
    if (comm != CV_COMM_NULL)
        mpi.Comm_free(&comm);
    cv_errors_back(errors);
    return file ? file : h5.H5VLfile_open(name, flags, fapl, dxpl, request);
}

bool cv_mpi_refuses_writer(const char *name)
{
    struct stat now;

    if (stat(name, &now) || !cv_parallel_reads(now.st_dev, now.st_ino))
        return false;
    CV_OPEN_ERROR("unable to open file: name = '%s': file is already open for read-only", name);
    return true;
}

void cv_mpi_show_driver(hid_t fapl)
{
    const struct cv_parallel *parallel = cv_mpi_driver_is_ours(fapl) ? cv_parallel_of(fapl) : NULL;

    if (parallel && cv_mpi_usable())
        mpi.Pset_fapl_mpio(fapl, parallel->comm, parallel->info);
    else if (cv_mpi_driver_is_ours(fapl))
        h5.H5Pset_fapl_sec2(fapl);
}

/* ---- Calls that HDF5 refuses for files that do not use MPI. ---- */

bool cv_mpi_is_collective(hid_t dxpl)
{
    int   mode   = INDEPENDENT;
    hid_t errors = cv_errors_keep();

    if (mpi.Pget_dxpl_mpio(dxpl, &mode) < 0)
        mode = INDEPENDENT;
    cv_errors_back(errors);
    return mode != INDEPENDENT;
}

void cv_mpi_set_collective(hid_t dxpl, bool collective)
{
    hid_t errors = cv_errors_keep();

    mpi.Pset_dxpl_mpio(dxpl, collective ? COLLECTIVE : INDEPENDENT);
    cv_errors_back(errors);
}

/* Whether a dataset lies in a file that our driver has open: by the number that HDF5 gave that. */
static bool read_alone(const struct cv_object *dataset, hid_t dxpl)
{
    H5O_info2_t info;

    return cv_object_info(dataset, H5I_DATASET, dxpl, &info) && cv_mpi_driver_has(info.fileno);
}

bool cv_mpi_read_begins(struct cv_object *dataset, hid_t dxpl)
{
    if (!cv_parallel_any() || !cv_mpi_is_collective(dxpl))
        return false;
    if (dataset->alone == CV_UNKNOWN)
        dataset->alone = read_alone(dataset, dxpl) ? CV_YES : CV_NO;
    if (dataset->alone == CV_YES)
        cv_mpi_set_collective(dxpl, false);
    return dataset->alone == CV_YES;
}

void cv_mpi_read_ends(bool changed, hid_t dxpl)
{
    if (changed)
        cv_mpi_set_collective(dxpl, true);
}

herr_t cv_mpi_optional(struct cv_object *file, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    unsigned long        number = 0;
    H5VL_file_get_args_t get    = {.op_type = H5VL_FILE_GET_FILENO};

    get.args.get_fileno.fileno = &number;
    if (!cv_parallel_any() || h5.H5VLfile_get(file->under, file->vol, &get, dxpl, NULL) < 0 || !cv_mpi_driver_has(number))
        return h5.H5VLfile_optional(file->under, file->vol, args, dxpl, request);
    if (args->op_type == CV_GET_ATOMICITY)
        **(bool **)args->args = true; /* the only member of its struct is a pointer to the answer */
    return 0;
}
