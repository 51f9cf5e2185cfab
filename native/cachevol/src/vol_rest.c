/* Introspection, requests, blobs, tokens and the generic optional operation: all go below as they are. */
#include "object.h"
#include "operations.h"
#include "stage.h"

static herr_t get_conn_cls(void *pointer, H5VL_get_conn_lvl_t level, const H5VL_class_t **class)
{
    struct cv_object *o = pointer;

    if (level == H5VL_GET_CONN_LVL_CURR) {
        *class = cv_class();
        return 0;
    }
    return h5.H5VLintrospect_get_conn_cls(o->under, o->vol, level, class);
}

static herr_t get_cap_flags(const void *pointer, uint64_t *flags)
{
    const struct cv_info *info = pointer;

    if (info)
        return h5.H5VLintrospect_get_cap_flags(info->info, info->vol, flags);
    hid_t  native  = cv_native();
    herr_t outcome = h5.H5VLintrospect_get_cap_flags(NULL, native, flags);
    h5.H5Idec_ref(native);
    return outcome;
}

static herr_t opt_query(void *pointer, H5VL_subclass_t class, int type, uint64_t *flags)
{
    struct cv_object *o = pointer;

    if (cv_operation_is_ours(class, type)) {
        if (flags)
            *flags = H5VL_OPT_QUERY_SUPPORTED | H5VL_OPT_QUERY_READ_DATA;
        return 0;
    }
    return h5.H5VLintrospect_opt_query(o->under, o->vol, class, type, flags);
}

const H5VL_introspect_class_t cv_introspect_class = {get_conn_cls, get_cap_flags, opt_query};

static herr_t request_wait(void *pointer, uint64_t timeout, H5VL_request_status_t *status)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLrequest_wait(o->under, o->vol, timeout, status);

    if (outcome >= 0 && *status != H5VL_REQUEST_STATUS_IN_PROGRESS)
        cv_object_free(o);
    return outcome;
}

static herr_t request_notify(void *pointer, H5VL_request_notify_t call, void *context)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLrequest_notify(o->under, o->vol, call, context);

    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

static herr_t request_cancel(void *pointer, H5VL_request_status_t *status)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLrequest_cancel(o->under, o->vol, status);

    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

static herr_t request_specific(void *pointer, H5VL_request_specific_args_t *args)
{
    struct cv_object *o = pointer;
    return h5.H5VLrequest_specific(o->under, o->vol, args);
}

static herr_t request_optional(void *pointer, H5VL_optional_args_t *args)
{
    struct cv_object *o = pointer;
    return h5.H5VLrequest_optional(o->under, o->vol, args);
}

static herr_t request_free(void *pointer)
{
    struct cv_object *o       = pointer;
    herr_t            outcome = h5.H5VLrequest_free(o->under, o->vol);

    if (outcome >= 0)
        cv_object_free(o);
    return outcome;
}

const H5VL_request_class_t cv_request_class = {request_wait,     request_notify,   request_cancel,
                                               request_specific, request_optional, request_free};

static herr_t blob_put(void *pointer, const void *data, size_t size, void *id, void *context)
{
    struct cv_object *o = pointer;

    cv_changing();
    return h5.H5VLblob_put(o->under, o->vol, data, size, id, context);
}

static herr_t blob_get(void *pointer, const void *id, void *data, size_t size, void *context)
{
    struct cv_object *o = pointer;
    return h5.H5VLblob_get(o->under, o->vol, id, data, size, context);
}

static herr_t blob_specific(void *pointer, void *id, H5VL_blob_specific_args_t *args)
{
    struct cv_object *o = pointer;

    cv_changing();
    return h5.H5VLblob_specific(o->under, o->vol, id, args);
}

static herr_t blob_optional(void *pointer, void *id, H5VL_optional_args_t *args)
{
    struct cv_object *o = pointer;
    return h5.H5VLblob_optional(o->under, o->vol, id, args);
}

const H5VL_blob_class_t cv_blob_class = {blob_put, blob_get, blob_specific, blob_optional};

static herr_t token_cmp(void *pointer, const H5O_token_t *a, const H5O_token_t *b, int *value)
{
    struct cv_object *o = pointer;
    return h5.H5VLtoken_cmp(o->under, o->vol, a, b, value);
}

static herr_t token_to_str(void *pointer, H5I_type_t type, const H5O_token_t *token, char **text)
{
    struct cv_object *o = pointer;
    return h5.H5VLtoken_to_str(o->under, type, o->vol, token, text);
}

static herr_t token_from_str(void *pointer, H5I_type_t type, const char *text, H5O_token_t *token)
{
    struct cv_object *o = pointer;
    return h5.H5VLtoken_from_str(o->under, type, o->vol, text, token);
}

const H5VL_token_class_t cv_token_class = {token_cmp, token_to_str, token_from_str};

herr_t cv_optional(void *pointer, H5VL_optional_args_t *args, hid_t dxpl, void **request)
{
    struct cv_object *o = pointer;

    cv_changing();
    herr_t outcome = h5.H5VLoptional(o->under, o->vol, args, dxpl, request);

    cv_wrap_request(request, o->vol);
    return outcome;
}
