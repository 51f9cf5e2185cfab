#include "stage.h"
#include "mpi_write.h"
#include "vol_point.h"

static void *commit(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t type, hid_t lcpl, hid_t tcpl,
                    hid_t tapl, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    void *under = h5.H5VLdatatype_commit(o->under, where, o->vol, name, type, lcpl, tcpl, tapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

static void *open_type(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t tapl, hid_t dxpl,
                       void **request)
{
    struct cv_object *o     = pointer;
    void             *under = h5.H5VLdatatype_open(o->under, where, o->vol, name, tapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

static herr_t get(void *pointer, H5VL_datatype_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLdatatype_get(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t specific(void *pointer, H5VL_datatype_specific_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o   = pointer;
    hid_t             vol = o->vol; /* a refresh may free the object */

    cv_changing();
    if (args->op_type == H5VL_DATATYPE_FLUSH && cv_mpi_settle(o, H5I_DATATYPE, dxpl))
        return -1;
    herr_t outcome = h5.H5VLdatatype_specific(o->under, vol, args, dxpl, request);
    cv_wrap_request(request, vol);
    return args->op_type == H5VL_DATATYPE_FLUSH ? cv_point_after_flush(outcome, o, H5I_DATATYPE, dxpl) : outcome;
}

static herr_t optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLdatatype_optional(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t close_type(void *pointer, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_point_closing();
    herr_t outcome = h5.H5VLdatatype_close(o->under, o->vol, dxpl, request);

    cv_wrap_request(request, o->vol);
    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

const H5VL_datatype_class_t cv_datatype_class = {commit, open_type, get, specific, optional, close_type};
