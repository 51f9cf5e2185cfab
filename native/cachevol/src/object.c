#include "object.h"

#include <stdlib.h>

H5VL_class_t cv_class;

struct cv_object *cv_object_new(void *under, hid_t vol)
{
    struct cv_object *object = malloc(sizeof *object);

    if (!object)
        return NULL;
    *object = (struct cv_object){.under = under, .vol = vol, .layout = -1};
    h5.H5Iinc_ref(vol);
    return object;
}

void cv_object_free(struct cv_object *object)
{
    /* Letting go of the id must not wipe the errors that the caller is about to show. */
    hid_t errors = cv_errors_keep();

    h5.H5Idec_ref(object->vol);
    cv_errors_back(errors);
    free(object->storage);
    free(object);
}

bool cv_object_info(const struct cv_object *object, H5I_type_t type, hid_t dxpl, H5O_info2_t *info)
{
    H5VL_loc_params_t here = {.obj_type = type, .type = H5VL_OBJECT_BY_SELF};

    return cv_object_info_at(object, &here, dxpl, info);
}

bool cv_object_info_at(const struct cv_object *object, const H5VL_loc_params_t *where, hid_t dxpl, H5O_info2_t *info)
{
    H5VL_object_get_args_t get    = {.op_type = H5VL_OBJECT_GET_INFO};
    hid_t                  errors = cv_errors_keep();

    get.args.get_info.fields = H5O_INFO_BASIC;
    get.args.get_info.oinfo  = info;
    bool found = h5.H5VLobject_get(object->under, where, object->vol, &get, dxpl, NULL) >= 0;
    cv_errors_back(errors);
    return found;
}

bool cv_elements_are_whole(hid_t type)
{
    return h5.H5Tdetect_class(type, H5T_VLEN) == 0 && h5.H5Tdetect_class(type, H5T_STRING) == 0 &&
           h5.H5Tdetect_class(type, H5T_REFERENCE) == 0;
}

hid_t cv_native(void)
{
    return h5.H5VLregister_connector_by_value(H5VL_NATIVE_VALUE, H5P_DEFAULT);
}

/* ---- Wrapping of objects that HDF5 made by itself. ---- */

/* HDF5 asks for one at each call and lets go of it at the end. The id is counted only where the connector below has a
   context too, and may keep it beyond the call: the native connector, which has none, never goes away. */
struct context {
    hid_t vol;
    void *under;
};

static void *get_object(const void *pointer)
{
    const struct cv_object *object = pointer;
    return h5.H5VLget_object(object->under, object->vol);
}

static herr_t get_wrap_ctx(const void *pointer, void **result)
{
    const struct cv_object *object  = pointer;
    struct context         *context = calloc(1, sizeof *context);

    if (!context)
        return -1;
    context->vol = object->vol;
    if (object->under)
        h5.H5VLget_wrap_ctx(object->under, object->vol, &context->under);
    if (context->under)
        h5.H5Iinc_ref(context->vol);
    *result = context;
    return 0;
}

static void *wrap_object(void *pointer, H5I_type_t type, void *wrap)
{
    struct context *context = wrap;
    return cv_wrap(h5.H5VLwrap_object(pointer, type, context->vol, context->under), context->vol);
}

static void *unwrap_object(void *pointer)
{
    struct cv_object *object = pointer;
    void             *under  = h5.H5VLunwrap_object(object->under, object->vol);

    if (under)
        cv_object_free(object);
    return under;
}

static herr_t free_wrap_ctx(void *wrap)
{
    struct context *context = wrap;

    if (context->under) {
        hid_t errors = cv_errors_keep();
        h5.H5VLfree_wrap_ctx(context->under, context->vol);
        h5.H5Idec_ref(context->vol);
        cv_errors_back(errors);
    }
    free(context);
    return 0;
}

const H5VL_wrap_class_t cv_wrap_class = {get_object, get_wrap_ctx, wrap_object, unwrap_object, free_wrap_ctx};
