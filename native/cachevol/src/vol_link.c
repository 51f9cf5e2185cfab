#include "stage.h"
#include "mpi_write.h"
#include "vol_point.h"

static void *under_of(void *pointer)
{
    return pointer ? ((struct cv_object *)pointer)->under : NULL;
}

/* Either object of a pair may be missing (H5L_SAME_LOC). */
static hid_t vol_of(void *pointer, void *other)
{
    struct cv_object *o = pointer ? pointer : other;
    return o ? o->vol : H5I_INVALID_HID;
}

static herr_t create(H5VL_link_create_args_t *args, void *pointer, const H5VL_loc_params_t *where, hid_t lcpl, hid_t lapl,
                     hid_t dxpl, void **request)
{
    H5VL_link_create_args_t below = *args;
    hid_t                   vol   = vol_of(pointer, NULL);

    cv_changing();
    if (args->op_type == H5VL_LINK_CREATE_HARD) {
        vol                       = vol_of(pointer, args->args.hard.curr_obj);
        below.args.hard.curr_obj = under_of(args->args.hard.curr_obj);
    }
    herr_t outcome = h5.H5VLlink_create(&below, under_of(pointer), where, vol, lcpl, lapl, dxpl, request);
    cv_wrap_request(request, vol);
    if (outcome >= 0 && pointer && args->op_type == H5VL_LINK_CREATE_HARD)
        cv_point_after_link(pointer, where->obj_type, dxpl);
    return outcome;
}

static herr_t copy(void *from, const H5VL_loc_params_t *where, void *to, const H5VL_loc_params_t *there, hid_t lcpl,
                   hid_t lapl, hid_t dxpl, void **request)
{
    hid_t vol = vol_of(from, to);

    cv_changing();
    herr_t outcome = h5.H5VLlink_copy(under_of(from), where, under_of(to), there, vol, lcpl, lapl, dxpl, request);

    cv_wrap_request(request, vol);
    return outcome;
}

static herr_t move(void *from, const H5VL_loc_params_t *where, void *to, const H5VL_loc_params_t *there, hid_t lcpl,
                   hid_t lapl, hid_t dxpl, void **request)
{
    hid_t vol = vol_of(from, to);

    cv_point_deleting();
    herr_t outcome = h5.H5VLlink_move(under_of(from), where, under_of(to), there, vol, lcpl, lapl, dxpl, request);

    cv_wrap_request(request, vol);
    return outcome;
}

static herr_t get(void *pointer, const H5VL_loc_params_t *where, H5VL_link_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLlink_get(o->under, where, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t specific(void *pointer, const H5VL_loc_params_t *where, H5VL_link_specific_args_t *args, hid_t dxpl,
                       void **request)
{
    struct cv_object *o = pointer;

    cv_point_deleting();
    if (args->op_type == H5VL_LINK_DELETE && cv_mpi_deleting(o, where->obj_type, dxpl))
        return -1;
    herr_t outcome = h5.H5VLlink_specific(o->under, where, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t optional(void *pointer, const H5VL_loc_params_t *where, H5VL_optional_args_t *args, hid_t dxpl,
                       void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLlink_optional(o->under, where, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

const H5VL_link_class_t cv_link_class = {create, copy, move, get, specific, optional};
