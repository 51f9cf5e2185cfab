#include "mpi_driver.h"
#include "driver_common.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRIVER_VALUE ((H5FD_class_value_t)498) /* 256 to 511: not registered with The HDF Group */

struct file {
    struct cv_driver_file common; /* first */
    struct cv_parallel   *parallel; /* NULL for a file that a link in a parallel one leads to */
    struct file          *next;
    char                  name[PATH_MAX];
};

struct info {
    uint64_t number; /* of the parallel file; 0 in the list that opens it */
};

struct cv_parallel *cv_parallel_opening;

static hid_t               driver_id = H5I_INVALID_HID;
static struct cv_parallel *all;
static struct file        *opened;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    char        path[PATH_MAX];
    struct stat now;

    (void)fapl, (void)maxaddr;
    if (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) {
        CV_OPEN_ERROR("unable to open file: name = '%s': a link from a file that cachevol reads for MPI leads here, "
                      "and asks for writing: open that file itself for writing, or set HDF5_CACHE_RD=no", name);
        return NULL;
    }
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->common.fd = open(name, O_RDONLY | O_CLOEXEC);
    if (file->common.fd < 0 || fstat(file->common.fd, &now) || strlen(name) >= sizeof file->name) {
        CV_OPEN_ERROR("unable to open file: name = '%s', errno = %d, error message = '%s'", name, errno, strerror(errno));
        if (file->common.fd >= 0)
            close(file->common.fd);
        free(file);
        return NULL;
    }
    strcpy(file->name, name);
    file->common.eof               = (haddr_t)now.st_size;
    struct cv_store *store  = S_ISREG(now.st_mode) && realpath(name, path) ? cv_session_store() : NULL;
    file->common.reader            = store ? cv_reader_open(store, path, file->common.fd) : NULL;
    if (cv_parallel_opening) {
        static uint64_t numbers;
        file->parallel         = cv_parallel_opening;
        file->parallel->reader = file->common.reader;
        file->parallel->device = now.st_dev, file->parallel->inode = now.st_ino;
        file->parallel->number = ++numbers;
        file->parallel->next   = all;
        all                    = file->parallel;
        cv_parallel_opening    = NULL;
    }
    file->next = opened;
    opened     = file;
    return &file->common.pub;
}

static herr_t driver_close(H5FD_t *pub)
{
    struct file  *file = (struct file *)pub;
    struct file **each = &opened;
    int           over = 0;

    cv_driver_closed = true;
    while (*each != file)
        each = &(*each)->next;
    *each = file->next;
    if (file->parallel) {
        struct cv_parallel **at = &all;
        while (*at != file->parallel)
            at = &(*at)->next;
        *at = file->parallel->next;
        mpi.Finalized(&over);
        if (!over) { /* freeing a communicator waits for nobody where nothing is on its way, which is so here */
            if (file->parallel->handle)
                mpi.File_close(&file->parallel->handle);
            mpi.Comm_free(&file->parallel->comm);
            if (file->parallel->info != CV_INFO_NULL)
                mpi.Info_free(&file->parallel->info);
        }
        free(file->parallel);
    }
    if (file->common.reader)
        cv_reader_close(file->common.reader);
    int bad = close(file->common.fd);
    free(file);
    return bad ? -1 : 0;
}

static int driver_cmp(const H5FD_t *a, const H5FD_t *b)
{
    struct stat x, y;

    if (fstat(((const struct file *)a)->common.fd, &x) || fstat(((const struct file *)b)->common.fd, &y))
        return a < b ? -1 : 1;
    if (x.st_dev != y.st_dev)
        return x.st_dev < y.st_dev ? -1 : 1;
    return x.st_ino < y.st_ino ? -1 : x.st_ino > y.st_ino;
}

static herr_t driver_query(const H5FD_t *pub, unsigned long *flags)
{
    (void)pub;
    if (flags)
        *flags = CV_DRIVER_FEATURES;
    return 0;
}

static herr_t driver_set_eoa(H5FD_t *pub, H5FD_mem_t type, haddr_t eoa)
{
    (void)type;
    ((struct file *)pub)->common.eoa = eoa;
    return 0;
}

/* Programs that ask a parallel file for its handle expect an MPI_File. Theirs is of this process alone: asking for it
   is not collective, and a file that is only read needs nothing of the others. */
static herr_t driver_get_handle(H5FD_t *pub, hid_t fapl, void **handle)
{
    struct file *file = (struct file *)pub;

    (void)fapl;
    if (!file->parallel || !cv_mpi_usable())
        return -1;
    if (!file->parallel->handle &&
        mpi.File_open(CV_COMM_SELF, file->name, CV_RDONLY, file->parallel->info, &file->parallel->handle)) {
        file->parallel->handle = NULL;
        return -1;
    }
    *handle = &file->parallel->handle;
    return 0;
}

static herr_t driver_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, void *data)
{
    struct file *file = (struct file *)pub;

    (void)type, (void)dxpl;
    if (cv_driver_get(&file->common, address, size, data)) {
        CV_OPEN_ERROR("file read failed: filename = '%s', errno = %d, error message = '%s', total read size = %zu, "
                      "offset = %llu", file->name, errno, strerror(errno), size, (unsigned long long)address);
        return -1;
    }
    return 0;
}

static herr_t driver_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *data)
{
    (void)type, (void)dxpl, (void)address, (void)size, (void)data;
    CV_WRITE_ERROR("file write failed: filename = '%s': it is open for reading only", ((struct file *)pub)->name);
    return -1;
}

/* What a list tells of the file that HDF5 made it of. It also opens the files to which links lead. */
static void *driver_fapl_get(H5FD_t *pub)
{
    struct info *info = malloc(sizeof *info);

    if (info)
        info->number = ((struct file *)pub)->parallel ? ((struct file *)pub)->parallel->number : 0;
    return info;
}

static void *driver_fapl_copy(const void *from)
{
    struct info *info = malloc(sizeof *info);

    if (info)
        *info = *(const struct info *)from;
    return info;
}

static herr_t driver_fapl_free(void *info)
{
    free(info);
    return 0;
}

static const H5FD_class_t driver = {
    CV_DRIVER_ALIKE,
    .value      = DRIVER_VALUE,
    .name       = "tiercel_cachevol_mpi",
    .fc_degree  = H5F_CLOSE_SEMI, /* as HDF5's MPI driver has it */
    .fapl_size  = sizeof(struct info),
    .fapl_get   = driver_fapl_get,
    .fapl_copy  = driver_fapl_copy,
    .fapl_free  = driver_fapl_free,
    .open       = driver_open,
    .close      = driver_close,
    .cmp        = driver_cmp,
    .query      = driver_query,
    .set_eoa    = driver_set_eoa,
    .get_handle = driver_get_handle,
    .read       = driver_read,
    .write      = driver_write,
};

int cv_mpi_driver_set(hid_t fapl)
{
    struct info info = {0};

    return cv_driver_know(&driver_id, &driver) || h5.H5Pset_driver(fapl, driver_id, &info) < 0 ? -1 : 0;
}

bool cv_mpi_driver_is_ours(hid_t fapl)
{
    return cv_driver_asked(fapl, driver_id);
}

bool cv_mpi_driver_has(unsigned long number)
{
    const struct file *at = opened;

    while (at && at->common.pub.fileno != number)
        at = at->next;
    return at;
}

const struct cv_parallel *cv_parallel_of(hid_t fapl)
{
    const struct info *info = h5.H5Pget_driver_info(fapl);

    for (const struct cv_parallel *at = all; at && info; at = at->next)
        if (at->number == info->number)
            return at;
    return NULL;
}

bool cv_parallel_reads(dev_t device, ino_t inode)
{
    for (const struct cv_parallel *at = all; at; at = at->next)
        if (at->device == device && at->inode == inode)
            return true;
    return false;
}

bool cv_parallel_any(void)
{
    return all;
}

bool cv_parallel_still(const struct cv_parallel *parallel)
{
    const struct cv_parallel *at = all;

    while (at && at != parallel)
        at = at->next;
    return at;
}

void cv_parallel_settle(void)
{
    for (struct cv_parallel *at = all; at; at = at->next)
        if (at->reader)
            cv_reader_settle(at->reader);
}
