#include "driver.h"
#include "config.h"
#include "copy.h"
#include "driver_common.h"
#include "left.h"
#include "reader.h"
#include "reasons.h"
#include "session.h"
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRIVER_VALUE ((H5FD_class_value_t)497) /* 256 to 511: not registered with The HDF Group */

struct file {
    struct cv_driver_file common; /* first */
    H5FD_t               *inner;
    struct cv_stage      *stage;
    char                 *written; /* path of a file that is open for writing while reads are cached: it may have a copy */
};

bool cv_flushing_all, cv_opening, cv_emptying;

static hid_t driver_id = H5I_INVALID_HID, sec2_id = H5I_INVALID_HID;

#define CV_STAGED_ERROR()                                                                                     \
    CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'", errno,   \
                   strerror(errno))

static haddr_t greater(haddr_t a, haddr_t b)
{
    return a > b ? a : b;
}

static H5FD_t *open_inner(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    hid_t   plain = h5.H5Pcopy(fapl);
    H5FD_t *inner = NULL;

    if (plain < 0)
        return NULL;
    if (h5.H5Pset_fapl_sec2(plain) >= 0)
        inner = h5.H5FDopen(name, flags, plain, maxaddr);
    hid_t errors = inner ? H5I_INVALID_HID : h5.H5Eget_current_stack();
    h5.H5Pclose(plain);
    if (!inner)
        h5.H5Eset_current_stack(errors);
    return inner;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    const struct cv_driver_info *wanted = h5.H5Pget_driver_info(fapl);
    char                         why[PATH_MAX + 512], path[PATH_MAX];
    void                        *handle = NULL;
    struct stat                  now;

    if (cv_left_settle(name, cv_emptying || (flags & H5F_ACC_TRUNC), why, sizeof why)) {
        CV_OPEN_ERROR("%s", why);
        return NULL;
    }
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->inner = open_inner(name, flags, fapl, maxaddr);
    if (!file->inner || h5.H5FDget_vfd_handle(file->inner, H5P_DEFAULT, &handle) < 0 || !handle ||
        fstat(file->common.fd = *(int *)handle, &now)) {
        if (file->inner)
            h5.H5FDclose(file->inner);
        free(file);
        return NULL;
    }
    file->common.eof = (haddr_t)now.st_size;
    struct cv_store *store = wanted && !(flags & (H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ)) &&
                                     S_ISREG(now.st_mode) && realpath(name, path)
                                 ? cv_session_store()
                                 : NULL;
    if (wanted && (flags & (H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ)))
        cv_because(name, flags & H5F_ACC_RDWR ? cv_not_staged : cv_not_cached,
                   "it is read while it is written (SWMR)", false);
    bool write = flags & H5F_ACC_RDWR;
    if (wanted && !store && !(flags & (H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ)) && (write ? wanted->write : wanted->read))
        cv_because(name, write ? cv_not_staged : cv_not_cached,
                   S_ISREG(now.st_mode) ? "there is no node-local folder" : "it is no regular file", false);
    /* A writer and its readers in other processes look at the same bytes: nothing may stand between them. */
    if (store && (flags & H5F_ACC_RDWR) && wanted->write)
        file->stage = cv_stage_open(store, path, file->common.fd, now.st_dev, now.st_ino, file->common.eof);
    else if (store && !(flags & H5F_ACC_RDWR) && wanted->read)
        file->common.reader = cv_reader_open(store, path, file->common.fd);
    if (store && (flags & H5F_ACC_RDWR) && cv_config.read)
        file->written = strdup(path);
    return &file->common.pub;
}

static herr_t driver_close(H5FD_t *pub)
{
    struct file *file = (struct file *)pub;
    char         log[128];
    herr_t       outcome = 0;

    cv_driver_closed = true;
    if (file->common.reader)
        cv_reader_close(file->common.reader);
    if (file->stage && cv_stage_close(file->stage, log, sizeof log)) {
        outcome = -1;
        if (*log)
            CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'; they are "
                           "kept in log %s: make room, then run `tiercel cache replay`",
                           errno, strerror(errno), log);
        else
            CV_WRITE_ERROR("file write failed: errno = %d, error message = '%s'", errno, strerror(errno));
    }
    hid_t errors = outcome < 0 ? h5.H5Eget_current_stack() : H5I_INVALID_HID;
    if (h5.H5FDclose(file->inner) < 0)
        outcome = -1;
    else if (errors >= 0)
        h5.H5Eset_current_stack(errors);
    if (file->written)
        cv_copy_review(cv_session_store(), file->written);
    free(file->written);
    free(file);
    return outcome;
}

static int driver_cmp(const H5FD_t *a, const H5FD_t *b)
{
    return h5.H5FDcmp(((const struct file *)a)->inner, ((const struct file *)b)->inner);
}

static herr_t driver_query(const H5FD_t *pub, unsigned long *flags)
{
    if (pub)
        return h5.H5FDquery(((const struct file *)pub)->inner, flags);
    if (flags)
        *flags = CV_DRIVER_FEATURES | H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO;
    return 0;
}

static herr_t driver_set_eoa(H5FD_t *pub, H5FD_mem_t type, haddr_t eoa)
{
    struct file *file = (struct file *)pub;

    file->common.eoa = eoa;
    return h5.H5FDset_eoa(file->inner, type, eoa);
}

static herr_t driver_get_handle(H5FD_t *pub, hid_t fapl, void **handle)
{
    struct file *file = (struct file *)pub;

    if (file->stage && cv_stage_stop(file->stage)) { /* whoever has the descriptor reads and writes beside us */
        CV_STAGED_ERROR();
        return -1;
    }
    return h5.H5FDget_vfd_handle(file->inner, fapl, handle);
}

static herr_t driver_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, void *data)
{
    struct file *file = (struct file *)pub;

    if (file->stage) {
        int from_log = cv_stage_read(file->stage, address, data, size);
        if (from_log > 0)
            return 0;
        if (from_log < 0) {
            h5.H5FDread(file->inner, type, dxpl, address, size, data); /* whose error message says all */
            return -1;
        }
    }
    if (cv_driver_get(&file->common, address, size, data)) /* once more by sec2, whose error message says all */
        return h5.H5FDread(file->inner, type, dxpl, address, size, data);
    return 0;
}

static herr_t driver_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *data)
{
    struct file *file = (struct file *)pub;

    if (!file->stage) {
        if (cv_write_all(file->common.fd, data, size, (off_t)address) &&
            h5.H5FDwrite(file->inner, type, dxpl, address, size, data) < 0)
            return -1;
    } else if (cv_stage_write(file->stage, type == H5FD_MEM_DRAW, address, data, size)) {
        CV_WRITE_ERROR("file write failed: errno = %d, error message = '%s', total write size = %zu, offset = %llu",
                       errno, strerror(errno), size, (unsigned long long)address);
        return -1;
    }
    file->common.eof = greater(file->common.eof, address + size);
    return 0;
}

static herr_t driver_flush(H5FD_t *pub, hid_t dxpl, bool closing)
{
    struct file *file = (struct file *)pub;
    int          bad  = 0;

    (void)dxpl;
    if (!file->stage || closing) /* a file that is being closed is written to until driver_close */
        return 0;
    if (!cv_config.checkpoint)
        bad = cv_stage_drain(file->stage);
    else if (cv_flushing_all)
        cv_stage_noted(file->stage); /* the connector goes on once it knows that all of the flush succeeded */
    else if (cv_opening)
        bad = cv_stage_opened(file->stage);
    /* Else HDF5 flushes one object: the connector lets the rest of the file follow. */
    if (bad)
        CV_STAGED_ERROR();
    return bad;
}

static herr_t driver_truncate(H5FD_t *pub, hid_t dxpl, bool closing)
{
    struct file *file = (struct file *)pub;

    (void)dxpl, (void)closing;
    if (file->common.eoa == file->common.eof)
        return 0;
    if (file->stage ? cv_stage_resize(file->stage, file->common.eoa) : ftruncate(file->common.fd, (off_t)file->common.eoa)) {
        CV_WRITE_ERROR("unable to extend file properly: errno = %d, error message = '%s'", errno, strerror(errno));
        return -1;
    }
    file->common.eof = file->common.eoa;
    return 0;
}

static herr_t driver_lock(H5FD_t *pub, bool exclusive)
{
    return h5.H5FDlock(((struct file *)pub)->inner, exclusive);
}

static herr_t driver_unlock(H5FD_t *pub)
{
    return h5.H5FDunlock(((struct file *)pub)->inner);
}

static herr_t driver_del(const char *name, hid_t fapl)
{
    char             path[PATH_MAX];
    struct cv_store *store = cv_config.read && realpath(name, path) ? cv_session_store() : NULL;

    (void)fapl;
    if (!remove(name)) {
        if (store)
            cv_copy_review(store, path);
        return 0;
    }
    CV_OPEN_ERROR("unable to delete file: errno = %d, error message = '%s'", errno, strerror(errno));
    return -1;
}

static const H5FD_class_t driver = {
    CV_DRIVER_ALIKE,
    .value      = DRIVER_VALUE,
    .name       = "tiercel_cachevol",
    .fc_degree  = H5F_CLOSE_WEAK,
    .fapl_size  = sizeof(struct cv_driver_info),
    .open       = driver_open,
    .close      = driver_close,
    .cmp        = driver_cmp,
    .query      = driver_query,
    .set_eoa    = driver_set_eoa,
    .get_handle = driver_get_handle,
    .read       = driver_read,
    .write      = driver_write,
    .flush      = driver_flush,
    .truncate   = driver_truncate,
    .lock       = driver_lock,
    .unlock     = driver_unlock,
    .del        = driver_del,
};

int cv_driver_register(void)
{
    return cv_driver_know(&driver_id, &driver);
}

bool cv_driver_is_ours(hid_t fapl)
{
    return cv_driver_asked(fapl, driver_id);
}

bool cv_driver_is_sec2(hid_t fapl)
{
    if (sec2_id < 0) {
        hid_t plain = h5.H5Pcopy(fapl);
        if (plain >= 0 && h5.H5Pset_fapl_sec2(plain) >= 0)
            sec2_id = h5.H5Pget_driver(plain);
        if (plain >= 0)
            h5.H5Pclose(plain);
    }
    return cv_driver_asked(fapl, sec2_id);
}

int cv_driver_set(hid_t fapl, bool write, bool read)
{
    struct cv_driver_info info;

    memset(&info, 0, sizeof info);
    info.write = write, info.read = read;
    return h5.H5Pset_driver(fapl, driver_id, &info) < 0 ? -1 : 0;
}
