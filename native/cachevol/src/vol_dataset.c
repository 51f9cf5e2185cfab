#include "mpi_open.h"
#include "mpi_write.h"
#include "operations.h"
#include "stage.h"
#include "vol_point.h"

#include <stdlib.h>

/* Whether the processes fill the chunks of a new dataset together: MPI then rewrites what lies between them. They do so
   but for compressed ones that take their space as they are written. */
static bool fills_chunks(hid_t dcpl)
{
    H5D_alloc_time_t when;

    return h5.H5Pget_layout(dcpl) == H5D_CHUNKED &&
           (h5.H5Pget_nfilters(dcpl) < 1 || h5.H5Pget_alloc_time(dcpl, &when) < 0 || when == H5D_ALLOC_TIME_EARLY);
}

static void *create(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t lcpl, hid_t type, hid_t space,
                    hid_t dcpl, hid_t dapl, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    if (cv_writers_any() && fills_chunks(dcpl) && cv_mpi_settle(o, where->obj_type, dxpl))
        return NULL;
    void *under = h5.H5VLdataset_create(o->under, where, o->vol, name, lcpl, type, space, dcpl, dapl, dxpl, request);
    cv_wrap_request(request, o->vol);
    cv_point_if_pressed(o, where->obj_type, dxpl);
    struct cv_object *dataset = cv_wrap(under, o->vol);
    if (dataset) {
        cv_point_created(dataset, name);
        cv_mpi_created(dataset, dxpl);
    }
    return dataset;
}

static void *open_dataset(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t dapl, hid_t dxpl,
                          void **request)
{
    struct cv_object  *o     = pointer;
    H5VL_loc_params_t  named = {.obj_type = where->obj_type, .type = H5VL_OBJECT_BY_NAME,
                                .loc_data.loc_by_name = {name, dapl}};
    struct cv_mpi_open opening = cv_mpi_open_begins(o, &named, dxpl);
    void              *under = h5.H5VLdataset_open(o->under, where, o->vol, name, dapl, dxpl, request);

    cv_mpi_open_ends(opening, under);
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

    cv_point_before_read(count, datasets, dxpl);
    if (cv_mpi_before_read(count, datasets, file_spaces, dxpl)) {
        if (below != &one)
            free(below);
        return -1;
    }
    bool changed = cv_mpi_read_begins(datasets[0], dxpl);
    if (below)
        outcome = h5.H5VLdataset_read(count, below, vol, types, spaces, file_spaces, dxpl, data, request);
    cv_mpi_read_ends(changed, dxpl);
    cv_wrap_request(request, vol);
    if (below != &one)
        free(below);
    return outcome;
}

static herr_t write_dataset(size_t count, void *datasets[], hid_t types[], hid_t spaces[], hid_t file_spaces[], hid_t dxpl,
                            const void *data[], void **request)
{
    void  *one, **below = objects_below(count, datasets, &one);
    hid_t  vol          = ((struct cv_object *)datasets[0])->vol;
    herr_t outcome      = -1;

    cv_point_before_write(count, datasets, spaces, file_spaces, dxpl);
    struct cv_mpi_write write = cv_mpi_write_begins(count, datasets, file_spaces, dxpl);
    if (below && !write.bad)
        outcome = h5.H5VLdataset_write(count, below, vol, types, spaces, file_spaces, dxpl, data, request);
    cv_mpi_write_ends(write, dxpl);
    if (outcome >= 0 && !(request && *request))
        cv_point_after_write(count, datasets, dxpl);
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

    cv_changing();
    if (args->op_type != H5VL_DATASET_REFRESH && cv_mpi_settle(o, H5I_DATASET, dxpl))
        return -1;
    herr_t outcome = h5.H5VLdataset_specific(o->under, vol, args, dxpl, request);
    cv_wrap_request(request, vol);
    return args->op_type == H5VL_DATASET_FLUSH ? cv_point_after_flush(outcome, o, H5I_DATASET, dxpl) : outcome;
}

/* Whoever asks where in the file data lie may read there without HDF5, as PyTables does: then they must be there. */
static herr_t settle_told(struct cv_object *o, hid_t dxpl)
{
    return cv_stages_pending() ? cv_point_flush_all(o, H5I_DATASET, dxpl) : 0;
}

/* Whether the answer tells it; HDF5 writes what it holds of a dataset before it answers. */
static bool tells_where(int operation)
{
    return operation == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX ||
           operation == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD || operation == H5VL_NATIVE_DATASET_GET_OFFSET;
}

static herr_t optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    if (cv_operation_is_ours(H5VL_SUBCLS_DATASET, args->op_type))
        return cv_operation_on_dataset(o, args, dxpl, read_dataset);
    cv_changing();
    if (cv_mpi_before_any(o, H5I_DATASET, dxpl))
        return -1;
    /* An iteration tells it while it goes on. */
    if (args->op_type == H5VL_NATIVE_DATASET_CHUNK_ITER && settle_told(o, dxpl) < 0)
        return -1;
    herr_t outcome = h5.H5VLdataset_optional(o->under, o->vol, args, dxpl, request);
    cv_wrap_request(request, o->vol);
    if (outcome >= 0 && tells_where(args->op_type) && settle_told(o, dxpl) < 0)
        return -1;
    return outcome;
}

static herr_t close_dataset(void *pointer, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_point_before_close(o);
    herr_t outcome = h5.H5VLdataset_close(o->under, o->vol, dxpl, request);

    cv_wrap_request(request, o->vol);
    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

const H5VL_dataset_class_t cv_dataset_class = {create, open_dataset, read_dataset, write_dataset, get, specific, optional,
                                               close_dataset};
