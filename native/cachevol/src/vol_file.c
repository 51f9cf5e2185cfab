#include "config.h"
#include "driver.h"
#include "driver_common.h"
#include "mpi_driver.h"
#include "mpi_open.h"
#include "mpi_write.h"
#include "operations.h"
#include "reasons.h"
#include "stage.h"
#include "vol_point.h"

#include <string.h>

/* The access list for the connector below, with our driver where the program wants the plain one and caching is on. */
struct below {
    hid_t vol, fapl;
    void *info; /* ours, to be freed */
    bool  parallel, read, write; /* opened with HDF5's MPI driver; reads are to be cached, writes to be staged */
};

/* HDF5_CACHE_WR and HDF5_CACHE_RD as properties of one file's access list, as the original has them. */
static bool property(hid_t fapl, const char *name, bool otherwise)
{
    bool   value = otherwise;
    size_t size;

    if (h5.H5Pexist(fapl, name) > 0 && h5.H5Pget_size(fapl, name, &size) >= 0 && size == sizeof value)
        h5.H5Pget(fapl, name, &value);
    return value;
}

static int go_below(const char *name, hid_t fapl, struct below *below)
{
    struct cv_info *info = NULL;

    h5.H5Pget_vol_info(fapl, (void **)&info);
    below->info = info;
    below->vol  = info ? info->vol : cv_native();
    if (info && info->missing) {
        CV_OPEN_ERROR("HDF5_VOL_CONNECTOR: the connector %d below cachevol is not there", info->missing);
        below->fapl = -1;
        return -1;
    }
    below->fapl = h5.H5Pcopy(fapl);
    if (below->vol < 0 || below->fapl < 0)
        return -1;
    h5.H5Pset_vol(below->fapl, below->vol, info ? info->info : NULL);
    bool write = property(fapl, "HDF5_CACHE_WR", cv_config.write);
    bool read  = property(fapl, "HDF5_CACHE_RD", cv_config.read);
    below->read     = read;
    below->write    = write;
    below->parallel = cv_mpi_asked(fapl);
    if (!below->parallel && (write || read) && cv_driver_is_sec2(fapl))
        return cv_driver_set(below->fapl, write, read);
    if (name && !below->parallel && (write || read))
        cv_because(name, "not staged or cached", "it is opened by another file driver than the plain one and mpio", false);
    return 0;
}

/* Frees what go_below took; the errors on the stack, which tell why a file did not open, stay. */
static void come_back(struct below *below)
{
    hid_t errors = cv_errors_keep();

    if (below->fapl >= 0)
        h5.H5Pclose(below->fapl);
    if (below->info)
        cv_info_class.free(below->info);
    else if (below->vol >= 0)
        h5.H5Idec_ref(below->vol);
    cv_errors_back(errors);
}

/* Free space that a file keeps across openings lies in the file itself, and HDF5 moves it about as it uses it. */
static void look_at_free_space(struct cv_object *o, hid_t dxpl)
{
    H5VL_file_get_args_t  get = {.op_type = H5VL_FILE_GET_FCPL};
    H5F_fspace_strategy_t strategy;
    bool                  persists = true;
    hsize_t               threshold;

    if (!cv_stages_any())
        return;
    hid_t errors = cv_errors_keep();
    if (h5.H5VLfile_get(o->under, o->vol, &get, dxpl, NULL) >= 0) {
        h5.H5Pget_file_space_strategy(get.args.get_fcpl.fcpl_id, &strategy, &persists, &threshold);
        h5.H5Pclose(get.args.get_fcpl.fcpl_id);
    }
    cv_errors_back(errors);
    if (persists)
        cv_never_safe();
}

static void *create(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl, void **request)
{
    struct below below;
    void        *file = NULL;

    cv_changing();
    cv_writers_opening(name);
    if (!go_below(name, fapl, &below) && !(below.parallel && cv_mpi_refuses_writer(name))) {
        cv_opening  = true;
        cv_emptying = flags & H5F_ACC_TRUNC;
        file        = cv_wrap(h5.H5VLfile_create(name, flags, fcpl, below.fapl, dxpl, request), below.vol);
        cv_emptying = cv_opening = false;
        cv_wrap_request(request, below.vol);
        if (below.parallel && file)
            cv_writer_open(name, ((struct cv_object *)file)->under, below.vol, below.fapl, below.write, dxpl);
    }
    come_back(&below);
    if (file)
        look_at_free_space(file, dxpl);
    return file;
}

static void *open_file(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, void **request)
{
    struct below below;
    void        *file = NULL;

    cv_changing();
    cv_writers_opening(name);
    if (!go_below(name, fapl, &below) &&
        !(below.parallel && (flags & H5F_ACC_RDWR) && cv_mpi_refuses_writer(name))) {
        cv_opening = true;
        file       = cv_wrap(below.parallel ? cv_mpi_open(name, flags, below.fapl, below.vol, below.read, dxpl, request)
                                            : h5.H5VLfile_open(name, flags, below.fapl, dxpl, request), below.vol);
        cv_opening = false;
        cv_wrap_request(request, below.vol);
        if (below.parallel && file && (flags & H5F_ACC_RDWR))
            cv_writer_open(name, ((struct cv_object *)file)->under, below.vol, below.fapl, below.write, dxpl);
    }
    come_back(&below);
    if (file && (flags & H5F_ACC_RDWR))
        look_at_free_space(file, dxpl);
    return file;
}

static herr_t get(void *pointer, H5VL_file_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLfile_get(o->under, o->vol, args, dxpl, request);

    /* The program sees the driver that it asked for. */
    if (outcome >= 0 && args->op_type == H5VL_FILE_GET_FAPL && cv_driver_is_ours(args->args.get_fapl.fapl_id))
        h5.H5Pset_fapl_sec2(args->args.get_fapl.fapl_id);
    else if (outcome >= 0 && args->op_type == H5VL_FILE_GET_FAPL)
        cv_mpi_show_driver(args->args.get_fapl.fapl_id);
    cv_wrap_request(request, o->vol);
    return outcome;
}

/* The two operations that come with a name and an access list instead of a file. */
static herr_t by_name(H5VL_file_specific_args_t *args, hid_t dxpl, void **request)
{
    H5VL_file_specific_args_t mine = *args;
    bool         asks    = args->op_type == H5VL_FILE_IS_ACCESSIBLE;
    hid_t       *fapl    = asks ? &mine.args.is_accessible.fapl_id : &mine.args.del.fapl_id;
    struct below below;
    herr_t       outcome = -1;

    if (!go_below(NULL, *fapl, &below)) {
        *fapl       = below.fapl;
        cv_emptying = !asks;
        outcome     = h5.H5VLfile_specific(NULL, below.vol, &mine, dxpl, request);
        cv_emptying = false;
        cv_wrap_request(request, below.vol);
    }
    come_back(&below);
    return outcome;
}

static herr_t specific(void *pointer, H5VL_file_specific_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object         *o = pointer;
    H5VL_file_specific_args_t mine;

    if (args->op_type == H5VL_FILE_IS_ACCESSIBLE || args->op_type == H5VL_FILE_DELETE)
        return by_name(args, dxpl, request);
    hid_t vol = o->vol;
    mine      = *args;
    if (args->op_type == H5VL_FILE_IS_EQUAL && mine.args.is_equal.obj2)
        mine.args.is_equal.obj2 = ((struct cv_object *)mine.args.is_equal.obj2)->under;
    if (args->op_type == H5VL_FILE_FLUSH) {
        if (cv_mpi_settle(o, args->args.flush.obj_type, dxpl))
            return -1;
        cv_point_flush_begins();
    }
    herr_t outcome = h5.H5VLfile_specific(o->under, vol, &mine, dxpl, request);
    if (args->op_type == H5VL_FILE_FLUSH) {
        outcome = cv_point_flush_ends(outcome, true);
        cv_parallel_settle();
    }
    cv_wrap_request(request, vol);
    if (args->op_type == H5VL_FILE_REOPEN && outcome >= 0 && *args->args.reopen.file)
        *args->args.reopen.file = cv_object_new(*args->args.reopen.file, vol);
    return outcome;
}

/* Readers in other processes are about to watch the file: nothing is staged for it any more. Asking for the
   descriptor is how our driver is told. */
static void stop_staging(struct cv_object *o, hid_t dxpl)
{
    void                            *handle;
    H5VL_native_file_optional_args_t get  = {.get_vfd_handle = {H5P_DEFAULT, &handle}};
    H5VL_optional_args_t             args = {H5VL_NATIVE_FILE_GET_VFD_HANDLE, &get};

    h5.H5VLfile_optional(o->under, o->vol, &args, dxpl, NULL);
}

static herr_t optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    if (cv_operation_is_ours(H5VL_SUBCLS_FILE, args->op_type))
        return cv_operation_on_file(o, args, dxpl, specific);
    cv_changing();
    if (cv_config.checkpoint && cv_stages_any() &&
        (args->op_type == H5VL_NATIVE_FILE_START_SWMR_WRITE || args->op_type == H5VL_NATIVE_FILE_GET_VFD_HANDLE))
        cv_point_flush_all(o, H5I_FILE, dxpl); /* so that nothing is forced into the file before it is whole */
    if (args->op_type == H5VL_NATIVE_FILE_START_SWMR_WRITE)
        stop_staging(o, dxpl);
    if (args->op_type == H5VL_NATIVE_FILE_GET_VFD_HANDLE || args->op_type == H5VL_NATIVE_FILE_GET_FILE_IMAGE) {
        if (cv_mpi_before_any(o, H5I_FILE, dxpl))
            return -1;
        if (args->op_type == H5VL_NATIVE_FILE_GET_VFD_HANDLE)
            cv_writers_stop();
    }
    if (args->op_type == CV_SET_ATOMICITY && cv_mpi_deleting(o, H5I_FILE, dxpl)) /* and nothing more is staged */
        return -1;
    bool   atomicity = args->op_type == CV_GET_ATOMICITY || args->op_type == CV_SET_ATOMICITY;
    herr_t outcome   = atomicity ? cv_mpi_optional(o, args, dxpl, request)
                                 : h5.H5VLfile_optional(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t close_file(void *pointer, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    hid_t             errors  = H5I_INVALID_HID;
    herr_t            outcome = 0;

    cv_point_closing();
    bool settled = o->closed || !cv_mpi_closing(o, dxpl);
    if (!settled) /* what could not be written is kept; the file is closed all the same */
        errors = cv_errors_keep();
    cv_driver_closed = false;
    cv_point_flush_begins(); /* HDF5 does, where others have the file open still */
    if (o->under)
        outcome = h5.H5VLfile_close(o->under, o->vol, dxpl, request);
    cv_point_flush_ends(outcome, true); /* what fails now is tried again by them */
    cv_wrap_request(request, o->vol);
    if (settled && outcome >= 0) {
        cv_object_free(o);
        return outcome;
    }
    if (outcome >= 0)
        o->under = NULL;
    o->closed = outcome >= 0 || cv_driver_closed;
    if (!settled)
        cv_errors_back(errors);
    return -1;
}

const H5VL_file_class_t cv_file_class = {create, open_file, get, specific, optional, close_file};
