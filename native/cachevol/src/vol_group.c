#include "stage.h"
#include "mpi_write.h"
#include "vol_point.h"

static void *create(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t lcpl, hid_t gcpl, hid_t gapl,
                    hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    void *under = h5.H5VLgroup_create(o->under, where, o->vol, name, lcpl, gcpl, gapl, dxpl, request);
    cv_wrap_request(request, o->vol);
    cv_point_if_pressed(o, where->obj_type, dxpl);
    return cv_wrap(under, o->vol);
}

static void *open_group(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t gapl, hid_t dxpl,
                        void **request)
{
    struct cv_object *o     = pointer;
    void             *under = h5.H5VLgroup_open(o->under, where, o->vol, name, gapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

static herr_t get(void *pointer, H5VL_group_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLgroup_get(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t specific(void *pointer, H5VL_group_specific_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object          *o   = pointer;
    hid_t                      vol = o->vol; /* a refresh may free the object */
    H5VL_group_specific_args_t below;

    if (args->op_type == H5VL_GROUP_MOUNT) { /* the mounted file is one of our objects too */
        below                       = *args;
        below.args.mount.child_file = ((struct cv_object *)args->args.mount.child_file)->under;
        args                        = &below;
    }
    cv_changing();
    if (args->op_type == H5VL_GROUP_FLUSH && cv_mpi_settle(o, H5I_GROUP, dxpl))
        return -1;
    herr_t outcome = h5.H5VLgroup_specific(o->under, vol, args, dxpl, request);
    cv_wrap_request(request, vol);
    return args->op_type == H5VL_GROUP_FLUSH ? cv_point_after_flush(outcome, o, H5I_GROUP, dxpl) : outcome;
}

static herr_t optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLgroup_optional(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t close_group(void *pointer, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_point_closing();
    herr_t outcome = h5.H5VLgroup_close(o->under, o->vol, dxpl, request);

    cv_wrap_request(request, o->vol);
    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

const H5VL_group_class_t cv_group_class = {create, open_group, get, specific, optional, close_group};
