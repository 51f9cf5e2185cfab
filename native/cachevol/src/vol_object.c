#include "stage.h"
#include "mpi_write.h"
#include "vol_point.h"

static void *open_object(void *pointer, const H5VL_loc_params_t *where, H5I_type_t *type, hid_t dxpl, void **request)
{
    struct cv_object *o     = pointer;
    void             *under = h5.H5VLobject_open(o->under, where, o->vol, type, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

static herr_t copy(void *from, const H5VL_loc_params_t *where, const char *name, void *to, const H5VL_loc_params_t *there,
                   const char *new_name, hid_t ocpypl, hid_t lcpl, hid_t dxpl, void **request)
{
    struct cv_object *f = from, *t = to;

    cv_changing();
    if (cv_mpi_settle(f, where->obj_type, dxpl) || cv_mpi_settle(t, there->obj_type, dxpl))
        return -1;
    herr_t outcome = h5.H5VLobject_copy(f->under, where, name, t->under, there, new_name, f->vol, ocpypl, lcpl,
                                                   dxpl, request);

    cv_wrap_request(request, f->vol);
    return outcome;
}

static herr_t get(void *pointer, const H5VL_loc_params_t *where, H5VL_object_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLobject_get(o->under, where, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t specific(void *pointer, const H5VL_loc_params_t *where, H5VL_object_specific_args_t *args, hid_t dxpl,
                       void **request)
{
    struct cv_object *o   = pointer;
    hid_t             vol = o->vol; /* a refresh may free the object */

    cv_point_deleting();
    if ((args->op_type == H5VL_OBJECT_CHANGE_REF_COUNT && cv_mpi_deleting(o, where->obj_type, dxpl)) ||
        (args->op_type == H5VL_OBJECT_FLUSH && cv_mpi_settle(o, where->obj_type, dxpl)))
        return -1;
    herr_t outcome = h5.H5VLobject_specific(o->under, where, vol, args, dxpl, request);
    cv_wrap_request(request, vol);
    return args->op_type == H5VL_OBJECT_FLUSH ? cv_point_after_flush(outcome, o, where->obj_type, dxpl) : outcome;
}

static herr_t optional(void *pointer, const H5VL_loc_params_t *where, H5VL_optional_args_t *args, hid_t dxpl,
                       void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLobject_optional(o->under, where, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

const H5VL_object_class_t cv_object_class = {open_object, copy, get, specific, optional};
