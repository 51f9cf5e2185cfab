#include "stage.h"
#include "vol_point.h"

static void *create(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t type, hid_t space, hid_t acpl,
                    hid_t aapl, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    void *under = h5.H5VLattr_create(o->under, where, o->vol, name, type, space, acpl, aapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    cv_point_if_pressed(o, where->obj_type, dxpl);
    return cv_wrap(under, o->vol);
}

static void *open_attr(void *pointer, const H5VL_loc_params_t *where, const char *name, hid_t aapl, hid_t dxpl,
                       void **request)
{
    struct cv_object *o     = pointer;
    void             *under = h5.H5VLattr_open(o->under, where, o->vol, name, aapl, dxpl, request);

    cv_wrap_request(request, o->vol);
    return cv_wrap(under, o->vol);
}

static herr_t read_attr(void *pointer, hid_t type, void *data, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLattr_read(o->under, o->vol, type, data, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t write_attr(void *pointer, hid_t type, const void *data, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLattr_write(o->under, o->vol, type, data, dxpl, request);

    cv_wrap_request(request, o->vol);
    cv_point_if_pressed(o, H5I_ATTR, dxpl);
    return outcome;
}

static herr_t get(void *pointer, H5VL_attr_get_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLattr_get(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t specific(void *pointer, const H5VL_loc_params_t *where, H5VL_attr_specific_args_t *args, hid_t dxpl,
                       void **request)
{
    struct cv_object *o = pointer;

    cv_point_deleting();
    herr_t outcome = h5.H5VLattr_specific(o->under, where, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLattr_optional(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}

static herr_t close_attr(void *pointer, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_point_closing();
    herr_t outcome = h5.H5VLattr_close(o->under, o->vol, dxpl, request);

    cv_wrap_request(request, o->vol);
    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

const H5VL_attr_class_t cv_attr_class = {create, open_attr, read_attr, write_attr, get, specific, optional, close_attr};
