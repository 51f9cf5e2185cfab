#include "config.h"
#include "driver.h"
#include "object.h"
#include "rates.h"
#include "stage.h"
#include "stats.h"

#include <stdlib.h>

#define CHECKPOINT (64 << 10) /* bytes of data in the log after which the metadata follow */
#define SHARE      20         /* a checkpoint of other layouts than contiguous takes at most one part in this many */

static void *create(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t lcpl, hid_t type, hid_t space,
                    hid_t dcpl, hid_t dapl, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;
    void *under = h5.H5VLdataset_create(o->under, where, o->vol, name, lcpl, type, space, dcpl, dapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

static void *open_dataset(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t dapl, hid_t dxpl,
                          void **request)
{
    struct cv_object *o     = pointer;
    void             *under = h5.H5VLdataset_open(o->under, where, o->vol, name, dapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

/* The objects below, in `one` where there is just one, else in memory to free; NULL where they cannot go down
   in one call. */
static void **objects_below(size_t count, void *datasets[], void **one)
{
    void **below = count > 1 ? malloc(count * sizeof *below) : one;

    for (size_t i = 0; below && i < count; i++) {
        below[i] = ((struct cv_object *)datasets[i])->under;
        if (((struct cv_object *)datasets[i])->vol != ((struct cv_object *)datasets[0])->vol) {
            if (below != one)
                free(below);
            return NULL;
        }
    }
    return below;
}

static herr_t read_dataset(size_t count, void *datasets[], hid_t types[], hid_t spaces[], hid_t file_spaces[], hid_t dxpl,
                           void *data[], void **request)
{
    void  *one, **below = objects_below(count, datasets, &one);
    hid_t  vol          = ((struct cv_object *)datasets[0])->vol;
    herr_t outcome      = -1;

    if (below)
        outcome = h5.H5VLdataset_read(count, below, vol, types, spaces, file_spaces, dxpl, data, request);
    cv_wrap_request(request, vol);
    if (below != &one)
        free(below);
    return outcome;
}

static int layout_of(struct cv_object *o, hid_t dxpl)
{
    H5VL_dataset_get_args_t get = {.op_type = H5VL_DATASET_GET_DCPL};

    if (o->layout < 0 && h5.H5VLdataset_get(o->under, o->vol, &get, dxpl, NULL) >= 0) {
        o->layout = (int)h5.H5Pget_layout(get.args.get_dcpl.dcpl_id);
        h5.H5Pclose(get.args.get_dcpl.dcpl_id);
    }
    return o->layout;
}

/* Lets the file's metadata follow the data into the log, so that a program that is killed now leaves a file that can
   be opened once the log is replayed. Flushing a chunked dataset also writes (and compresses) chunks that are not
   full yet, so that is done only as often as it costs little. */
static void checkpoint(struct cv_object *o, hid_t dxpl)
{
    static uint64_t not_before;

    if (!cv_config.checkpoint || cv_stage_unflushed() < CHECKPOINT)
        return;
    hid_t    errors = h5.H5Eget_current_stack();
    uint64_t from   = cv_ticks();
    if (layout_of(o, dxpl) == H5D_CONTIGUOUS || from >= not_before) {
        H5VL_file_specific_args_t flush = {.op_type = H5VL_FILE_FLUSH};
        flush.args.flush.obj_type       = H5I_DATASET;
        flush.args.flush.scope          = H5F_SCOPE_LOCAL;
        cv_checkpointing                = true;
        h5.H5VLfile_specific(o->under, o->vol, &flush, dxpl, NULL);
        cv_checkpointing = false;
        cv_stage_flushed();
        CV_COUNT(checkpoints, 1);
        uint64_t now = cv_ticks();
        not_before   = now + SHARE * (now - from);
    }
    h5.H5Eset_current_stack(errors);
}

static herr_t write_dataset(size_t count, void *datasets[], hid_t types[], hid_t spaces[], hid_t file_spaces[], hid_t dxpl,
                            const void *data[], void **request)
{
    void  *one, **below = objects_below(count, datasets, &one);
    hid_t  vol          = ((struct cv_object *)datasets[0])->vol;
    herr_t outcome      = -1;

    if (below)
        outcome = h5.H5VLdataset_write(count, below, vol, types, spaces, file_spaces, dxpl, data, request);
    if (outcome >= 0 && !(request && *request))
        checkpoint(datasets[0], dxpl);
    cv_wrap_request(request, vol);
    if (below != &one)
        free(below);
    return outcome;
}

static herr_t get(void *pointer, H5VL_dataset_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLdataset_get(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t specific(void *pointer, H5VL_dataset_specific_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    hid_t             vol     = o->vol; /* a refresh may free the object */
    herr_t            outcome = h5.H5VLdataset_specific(o->under, vol, args, dxpl, request);

    cv_wrap_request(request, vol);
    return outcome;
}

static herr_t optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLdataset_optional(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t close_dataset(void *pointer, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLdataset_close(o->under, o->vol, dxpl, request);

    cv_wrap_request(request, o->vol);
    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

const H5VL_dataset_class_t cv_dataset_class = {create, open_dataset, read_dataset, write_dataset, get, specific, optional,
                                               close_dataset};
