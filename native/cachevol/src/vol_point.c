#include "vol_point.h"
#include "config.h"
#include "driver.h"
#include "rates.h"
#include "stage.h"
#include "stats.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define UNFLUSHED (64 << 10)             /* bytes of data in the log after which the metadata follow */
#define WORTH     (UINT64_C(4) << 20)    /* bytes of a write that had better be safe, where safe data go direct */
#define LONG      (UINT64_C(16) << 20)   /* or where they had better migrate while they are written */
#define CHEAP     (UINT64_C(64) << 20)   /* bytes of a write beside which a flush costs nothing */
#define SHARE     20                     /* other points take at most one part in this many of the time, */
#define FIRST     UINT64_C(20000000)     /* with so many ns at the beginning, */
#define MOST      UINT64_C(100000000)    /* and so many saved up */

static bool deleted;

void cv_point_deleting(void)
{
    deleted = true;
    cv_changing();
}

void cv_point_closing(void)
{
    if (deleted)
        cv_changing();
}

/* ---- What points may cost. ---- */

static struct {
    int64_t  credit; /* ns */
    uint64_t at;     /* ticks when it was counted, 0 before the first time */
} purse;

static bool affordable(void)
{
    uint64_t now = cv_ticks();

    purse.credit += purse.at ? (int64_t)((now - purse.at) / SHARE) : (int64_t)FIRST;
    purse.credit = purse.credit < (int64_t)MOST ? purse.credit : (int64_t)MOST;
    purse.at     = now;
    return purse.credit > 0;
}

/* The processor's time of this thread: a busy machine or a full log does not make a flush more costly. */
static uint64_t work_ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- Flushing all of a file. ---- */

void cv_point_flush_begins(void)
{
    cv_stages_retry();
    cv_flushing_all = true;
}

static bool held; /* the last flush made no point */

herr_t cv_point_flush_ends(herr_t outcome, bool drain)
{
    cv_flushing_all = false;
    int whole       = outcome < 0 || !cv_config.checkpoint ? 0 : cv_stages_whole(drain);
    held            = whole > 0;
    if (whole >= 0)
        return outcome;
    CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'", errno,
                   strerror(errno));
    return -1;
}

static herr_t flush(struct cv_object *o, H5I_type_t type, hid_t dxpl, bool drain)
{
    H5VL_file_specific_args_t args = {.op_type = H5VL_FILE_FLUSH};

    args.args.flush.obj_type = type;
    args.args.flush.scope    = H5F_SCOPE_LOCAL;
    cv_point_flush_begins();
    return cv_point_flush_ends(h5.H5VLfile_specific(o->under, o->vol, &args, dxpl, NULL), drain);
}

herr_t cv_point_flush_all(struct cv_object *o, H5I_type_t type, hid_t dxpl)
{
    return flush(o, type, dxpl, true);
}

herr_t cv_point_after_flush(herr_t outcome, struct cv_object *o, H5I_type_t type, hid_t dxpl)
{
    return outcome < 0 || !cv_config.checkpoint || !cv_stages_any() ? outcome : flush(o, type, dxpl, true);
}

/* Makes a point without waiting for the base storage. That it failed is no matter of the program's call: what the
   file lacks then, the next flush tries again. */
static bool make_point(struct cv_object *o, H5I_type_t type, hid_t dxpl)
{
    hid_t    errors = cv_errors_keep();
    uint64_t from   = cv_ticks(), work = work_ticks();
    bool     made   = flush(o, type, dxpl, false) >= 0 && !held;

    purse.credit -= (int64_t)(work_ticks() - work);
    CV_COUNT(checkpoints, 1);
    CV_COUNT(checkpoint_ns, cv_ticks() - from);
    cv_errors_back(errors);
    return made;
}

void cv_point_if_pressed(struct cv_object *o, H5I_type_t type, hid_t dxpl)
{
    if (cv_config.checkpoint && cv_stages_pressed())
        make_point(o, type, dxpl);
}

/* ---- Datasets. ---- */

/* Finds out how a dataset is stored, and how large its elements are. */
static void look_at(struct cv_object *o, hid_t dxpl)
{
    H5VL_dataset_get_args_t list = {.op_type = H5VL_DATASET_GET_DCPL}, type = {.op_type = H5VL_DATASET_GET_TYPE};
    bool                    stored = false, whole = false;

    if (o->layout >= 0)
        return;
    hid_t errors = cv_errors_keep();
    o->layout    = H5D_NLAYOUTS; /* unknown */
    if (h5.H5VLdataset_get(o->under, o->vol, &list, dxpl, NULL) >= 0) {
        o->layout = (int)h5.H5Pget_layout(list.args.get_dcpl.dcpl_id);
        stored    = (o->layout == H5D_CONTIGUOUS || o->layout == H5D_CHUNKED) &&
                 h5.H5Pget_nfilters(list.args.get_dcpl.dcpl_id) == 0;
        h5.H5Pclose(list.args.get_dcpl.dcpl_id);
    }
    if (h5.H5VLdataset_get(o->under, o->vol, &type, dxpl, NULL) >= 0) {
        whole           = cv_elements_are_whole(type.args.get_type.type_id);
        o->element_size = h5.H5Tget_size(type.args.get_type.type_id);
        h5.H5Tclose(type.args.get_type.type_id);
    }
    o->plain = stored && whole;
    cv_errors_back(errors);
}

static bool all_plain(size_t count, void *datasets[], hid_t dxpl)
{
    bool plain = true;

    for (size_t i = 0; i < count; i++) {
        look_at(datasets[i], dxpl);
        plain = plain && ((struct cv_object *)datasets[i])->plain;
    }
    return plain;
}

/* Reading may drop chunks from HDF5's cache that must be compressed and written first. */
void cv_point_before_read(size_t count, void *datasets[], hid_t dxpl)
{
    if (cv_config.checkpoint && cv_stages_any() && !all_plain(count, datasets, dxpl))
        cv_changing();
}

void cv_point_before_close(struct cv_object *o)
{
    if (deleted || o->layout < 0 || !o->plain)
        cv_changing();
}

/* Bytes of one dataset that a write touches. */
static uint64_t bytes_of(struct cv_object *o, hid_t space, hid_t file_space, hid_t dxpl)
{
    H5VL_dataset_get_args_t get    = {.op_type = H5VL_DATASET_GET_SPACE};
    hssize_t                points = -1;

    if (file_space > H5S_PLIST) /* the smaller numbers stand for all, one block, or the transfer list */
        points = h5.H5Sget_select_npoints(file_space);
    else if (space > H5S_PLIST)
        points = h5.H5Sget_select_npoints(space);
    else if (h5.H5VLdataset_get(o->under, o->vol, &get, dxpl, NULL) >= 0) {
        points = h5.H5Sget_select_npoints(get.args.get_space.space_id);
        h5.H5Sclose(get.args.get_space.space_id);
    }
    return points < 0 ? 0 : (uint64_t)points * o->element_size;
}

static uint64_t in_chunks; /* bytes written to chunks since the last point, which HDF5 may hold in its cache still */

void cv_point_before_write(size_t count, void *datasets[], const hid_t spaces[], const hid_t file_spaces[], hid_t dxpl)
{
    uint64_t bytes = 0;

    if (!cv_config.checkpoint || !cv_stages_any())
        return;
    bool  plain  = all_plain(count, datasets, dxpl);
    hid_t errors = cv_errors_keep();
    for (size_t i = 0; i < count; i++) {
        uint64_t part = bytes_of(datasets[i], spaces[i], file_spaces[i], dxpl);
        bytes += part;
        if (((struct cv_object *)datasets[i])->layout != H5D_CONTIGUOUS)
            in_chunks += part;
    }
    cv_errors_back(errors);
    if (!plain)
        cv_changing();
    if (!plain || cv_stages_unchanged())
        return;
    uint64_t least = cv_base_is_fast() ? WORTH : LONG;
    if (bytes >= CHEAP || (bytes >= least && affordable())) {
        cv_stages_want_logs();
        make_point(datasets[0], H5I_DATASET, dxpl);
    }
}

/* ---- Datasets that get their name last, as h5py's `file["name"] = data` makes them. ---- */

static uint64_t links;
static bool     link_due; /* data were written to a dataset without a name */

void cv_point_created(struct cv_object *o, const char *name)
{
    o->nameless = name ? 0 : links + 1;
}

void cv_point_after_link(struct cv_object *place, H5I_type_t type, hid_t dxpl)
{
    links++;
    if (link_due)
        make_point(place, type, dxpl);
    link_due = false;
}

/* Where data went to a place that the file's metadata do not tell of yet, the metadata follow; where HDF5 holds
   chunks that are not full yet, or compresses them, that is done only as often as it costs little. */
void cv_point_after_write(size_t count, void *datasets[], hid_t dxpl)
{
    bool due = false, wanted = atomic_load(&cv_waiting) >= UNFLUSHED || in_chunks >= UNFLUSHED;

    if (!cv_config.checkpoint || !cv_stages_any())
        return;
    uint64_t changes = atomic_load(&cv_changes);
    for (size_t i = 0; i < count && atomic_load(&cv_unflushed) >= UNFLUSHED; i++) {
        struct cv_object *o = datasets[i];
        if (o->nameless == links + 1)
            link_due = true;
        else
            due = due || (o->layout == H5D_CONTIGUOUS && o->settled != changes);
        wanted = wanted || o->layout != H5D_CONTIGUOUS;
    }
    if (!due && !cv_stages_pressed() && !(wanted && affordable()))
        return;
    for (size_t i = 0; i < count; i++) { /* they may lie in several files; a second flush of one costs nothing */
        struct cv_object *o = datasets[i];
        if (make_point(o, H5I_DATASET, dxpl))
            o->settled = changes;
    }
    in_chunks = 0;
}
