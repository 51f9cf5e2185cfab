/* What only passes through, as one table: for each callback what is done before it goes below, the call there, and what
   is done after it. `o` is the object, and `vol` its connector, which outlives it: a refresh may free the object. */
#include "mpi_write.h"
#include "object.h"
#include "operations.h"
#include "stage.h"
#include "vol_point.h"

#define ROW(type, name, parameters, before, call, after) \
    static type name parameters                          \
    {                                                    \
        struct cv_object *o   = pointer;                 \
        hid_t             vol = o->vol;                  \
        before;                                          \
        type outcome = h5.call;                          \
        after;                                           \
        return outcome;                                  \
    }

/* Those that may be carried out later, and those of them that give a new object. */
#define CALL(name, parameters, before, call, after) \
    ROW(herr_t, name, parameters, before, call, cv_wrap_request(request, vol); after)
#define OPEN(name, parameters, before, call, after) \
    ROW(void *, name, parameters, before, call, cv_wrap_request(request, vol); after; outcome = cv_wrap(outcome, vol))

/* Those that are done at once, or do not return before they are. */
#define ONCE(name, parameters, before, call, after) ROW(herr_t, name, parameters, before, call, after)

/* What several rows have in common. */
#define CHANGES  cv_changing()
#define DELETES  cv_point_deleting()
#define NOTHING
#define LATER    hid_t dxpl, void **request
#define FREE     if (outcome >= 0) cv_object_free(o)
#define PRESSED  cv_point_if_pressed(o, where->obj_type, dxpl)
#define SETTLES(flush, type)                                  \
    CHANGES;                                                  \
    if (args->op_type == flush && cv_mpi_settle(o, type, dxpl)) \
        return -1
#define FLUSHED(flush, type) \
    if (args->op_type == flush) outcome = cv_point_after_flush(outcome, o, type, dxpl)
#define OPTIONAL(name, below)                                                    \
    CALL(name, (void *pointer, H5VL_optional_args_t *args, LATER), CHANGES, \
         below(o->under, vol, args, dxpl, request), NOTHING)
#define CLOSE(name, below) \
    CALL(name, (void *pointer, LATER), cv_point_closing(), below(o->under, vol, dxpl, request), FREE)

typedef const H5VL_loc_params_t *place;

/* ---- Attributes. ---- */

OPEN(attr_create, (void *pointer, place where, const char *name, hid_t type, hid_t space, hid_t acpl, hid_t aapl, LATER),
     CHANGES, H5VLattr_create(o->under, where, vol, name, type, space, acpl, aapl, dxpl, request), PRESSED)
OPEN(attr_open, (void *pointer, place where, const char *name, hid_t aapl, LATER),
     NOTHING, H5VLattr_open(o->under, where, vol, name, aapl, dxpl, request), NOTHING)
CALL(attr_read, (void *pointer, hid_t type, void *data, LATER),
     NOTHING, H5VLattr_read(o->under, vol, type, data, dxpl, request), NOTHING)
CALL(attr_write, (void *pointer, hid_t type, const void *data, LATER),
     CHANGES, H5VLattr_write(o->under, vol, type, data, dxpl, request), cv_point_if_pressed(o, H5I_ATTR, dxpl))
CALL(attr_get, (void *pointer, H5VL_attr_get_args_t *args, LATER),
     NOTHING, H5VLattr_get(o->under, vol, args, dxpl, request), NOTHING)
CALL(attr_specific, (void *pointer, place where, H5VL_attr_specific_args_t *args, LATER),
     DELETES, H5VLattr_specific(o->under, where, vol, args, dxpl, request), NOTHING)
OPTIONAL(attr_optional, H5VLattr_optional)
CLOSE(attr_close, H5VLattr_close)

const H5VL_attr_class_t cv_attr_class = {attr_create, attr_open,     attr_read,     attr_write,
                                         attr_get,    attr_specific, attr_optional, attr_close};

/* ---- Types that have a name. ---- */

OPEN(type_commit, (void *pointer, place where, const char *name, hid_t type, hid_t lcpl, hid_t tcpl, hid_t tapl, LATER),
     CHANGES, H5VLdatatype_commit(o->under, where, vol, name, type, lcpl, tcpl, tapl, dxpl, request), NOTHING)
OPEN(type_open, (void *pointer, place where, const char *name, hid_t tapl, LATER),
     NOTHING, H5VLdatatype_open(o->under, where, vol, name, tapl, dxpl, request), NOTHING)
CALL(type_get, (void *pointer, H5VL_datatype_get_args_t *args, LATER),
     NOTHING, H5VLdatatype_get(o->under, vol, args, dxpl, request), NOTHING)
CALL(type_specific, (void *pointer, H5VL_datatype_specific_args_t *args, LATER),
     SETTLES(H5VL_DATATYPE_FLUSH, H5I_DATATYPE), H5VLdatatype_specific(o->under, vol, args, dxpl, request),
     FLUSHED(H5VL_DATATYPE_FLUSH, H5I_DATATYPE))
OPTIONAL(type_optional, H5VLdatatype_optional)
CLOSE(type_close, H5VLdatatype_close)

const H5VL_datatype_class_t cv_datatype_class = {type_commit,   type_open,     type_get,
                                                 type_specific, type_optional, type_close};

/* ---- Groups. ---- */

/* The mounted file is one of our objects too. */
#define MOUNTS                                                                                \
    H5VL_group_specific_args_t below = *args;                                                 \
    if (args->op_type == H5VL_GROUP_MOUNT)                                                    \
        below.args.mount.child_file = ((struct cv_object *)args->args.mount.child_file)->under

OPEN(group_create, (void *pointer, place where, const char *name, hid_t lcpl, hid_t gcpl, hid_t gapl, LATER),
     CHANGES, H5VLgroup_create(o->under, where, vol, name, lcpl, gcpl, gapl, dxpl, request), PRESSED)
OPEN(group_open, (void *pointer, place where, const char *name, hid_t gapl, LATER),
     NOTHING, H5VLgroup_open(o->under, where, vol, name, gapl, dxpl, request), NOTHING)
CALL(group_get, (void *pointer, H5VL_group_get_args_t *args, LATER),
     NOTHING, H5VLgroup_get(o->under, vol, args, dxpl, request), NOTHING)
CALL(group_specific, (void *pointer, H5VL_group_specific_args_t *args, LATER),
     MOUNTS; SETTLES(H5VL_GROUP_FLUSH, H5I_GROUP),
     H5VLgroup_specific(o->under, vol, args->op_type == H5VL_GROUP_MOUNT ? &below : args, dxpl, request),
     FLUSHED(H5VL_GROUP_FLUSH, H5I_GROUP))
OPTIONAL(group_optional, H5VLgroup_optional)
CLOSE(group_close, H5VLgroup_close)

const H5VL_group_class_t cv_group_class = {group_create,   group_open,     group_get,
                                           group_specific, group_optional, group_close};

/* ---- Links. Either object of a pair may be missing (H5L_SAME_LOC). ---- */

static void *under_of(void *pointer)
{
    return pointer ? ((struct cv_object *)pointer)->under : NULL;
}

static hid_t vol_of(void *pointer, void *other)
{
    struct cv_object *o = pointer ? pointer : other;
    return o ? o->vol : H5I_INVALID_HID;
}

static herr_t link_create(H5VL_link_create_args_t *args, void *pointer, place where, hid_t lcpl, hid_t lapl, LATER)
{
    H5VL_link_create_args_t below = *args;
    hid_t                   vol   = vol_of(pointer, NULL);

    cv_changing();
    if (args->op_type == H5VL_LINK_CREATE_HARD) {
        vol                      = vol_of(pointer, args->args.hard.curr_obj);
        below.args.hard.curr_obj = under_of(args->args.hard.curr_obj);
    }
    herr_t outcome = h5.H5VLlink_create(&below, under_of(pointer), where, vol, lcpl, lapl, dxpl, request);
    cv_wrap_request(request, vol);
    if (outcome >= 0 && pointer && args->op_type == H5VL_LINK_CREATE_HARD)
        cv_point_after_link(pointer, where->obj_type, dxpl);
    return outcome;
}

#define PAIR(name, before, below)                                                                                   \
    static herr_t name(void *from, place where, void *to, place there, hid_t lcpl, hid_t lapl, LATER)               \
    {                                                                                                               \
        hid_t vol = vol_of(from, to);                                                                               \
        before;                                                                                                     \
        herr_t outcome = h5.below(under_of(from), where, under_of(to), there, vol, lcpl, lapl, dxpl, request);      \
        cv_wrap_request(request, vol);                                                                              \
        return outcome;                                                                                             \
    }

PAIR(link_copy, CHANGES, H5VLlink_copy)
PAIR(link_move, DELETES, H5VLlink_move)
CALL(link_get, (void *pointer, place where, H5VL_link_get_args_t *args, LATER),
     NOTHING, H5VLlink_get(o->under, where, vol, args, dxpl, request), NOTHING)
CALL(link_specific, (void *pointer, place where, H5VL_link_specific_args_t *args, LATER),
     DELETES; if (args->op_type == H5VL_LINK_DELETE && cv_mpi_deleting(o, where->obj_type, dxpl)) return -1,
     H5VLlink_specific(o->under, where, vol, args, dxpl, request), NOTHING)
CALL(link_optional, (void *pointer, place where, H5VL_optional_args_t *args, LATER),
     CHANGES, H5VLlink_optional(o->under, where, vol, args, dxpl, request), NOTHING)

const H5VL_link_class_t cv_link_class = {link_create, link_copy, link_move, link_get, link_specific, link_optional};

/* ---- Objects of any kind. ---- */

#define BOTH_SETTLE                                                                                \
    struct cv_object *t = to;                                                                      \
    CHANGES;                                                                                       \
    if (cv_mpi_settle(o, where->obj_type, dxpl) || cv_mpi_settle(t, there->obj_type, dxpl))        \
        return -1
#define FLUSH_SETTLES                                                                              \
    DELETES;                                                                                       \
    if ((args->op_type == H5VL_OBJECT_CHANGE_REF_COUNT && cv_mpi_deleting(o, where->obj_type, dxpl)) || \
        (args->op_type == H5VL_OBJECT_FLUSH && cv_mpi_settle(o, where->obj_type, dxpl)))           \
        return -1

OPEN(object_open, (void *pointer, place where, H5I_type_t *type, LATER),
     struct cv_mpi_open opening = cv_mpi_open_begins(o, where, dxpl),
     H5VLobject_open(o->under, where, vol, type, dxpl, request), cv_mpi_open_ends(opening, outcome))
CALL(object_copy, (void *pointer, place where, const char *name, void *to, place there, const char *new_name, hid_t ocpypl,
                   hid_t lcpl, LATER), BOTH_SETTLE,
     H5VLobject_copy(o->under, where, name, t->under, there, new_name, vol, ocpypl, lcpl, dxpl, request), NOTHING)
CALL(object_get, (void *pointer, place where, H5VL_object_get_args_t *args, LATER),
     NOTHING, H5VLobject_get(o->under, where, vol, args, dxpl, request), NOTHING)
CALL(object_specific, (void *pointer, place where, H5VL_object_specific_args_t *args, LATER),
     FLUSH_SETTLES, H5VLobject_specific(o->under, where, vol, args, dxpl, request),
     FLUSHED(H5VL_OBJECT_FLUSH, where->obj_type))
CALL(object_optional, (void *pointer, place where, H5VL_optional_args_t *args, LATER),
     CHANGES, H5VLobject_optional(o->under, where, vol, args, dxpl, request), NOTHING)

const H5VL_object_class_t cv_object_class = {object_open, object_copy, object_get, object_specific, object_optional};

/* ---- What the connector is and can do. ---- */

#define IS_CURRENT                               \
    if (level == H5VL_GET_CONN_LVL_CURR) {       \
        *class = &cv_class;                      \
        return 0;                                \
    }
#define IS_OURS                                                                 \
    if (cv_operation_is_ours(class, type)) {                                    \
        if (flags)                                                              \
            *flags = H5VL_OPT_QUERY_SUPPORTED | H5VL_OPT_QUERY_READ_DATA;       \
        return 0;                                                               \
    }

ONCE(get_conn_cls, (void *pointer, H5VL_get_conn_lvl_t level, const H5VL_class_t **class),
     IS_CURRENT, H5VLintrospect_get_conn_cls(o->under, vol, level, class), NOTHING)
ONCE(opt_query, (void *pointer, H5VL_subclass_t class, int type, uint64_t *flags),
     IS_OURS, H5VLintrospect_opt_query(o->under, vol, class, type, flags), NOTHING)

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

const H5VL_introspect_class_t cv_introspect_class = {get_conn_cls, get_cap_flags, opt_query};

/* ---- Requests: gone once they are answered. ---- */

ONCE(request_wait, (void *pointer, uint64_t timeout, H5VL_request_status_t *status), NOTHING,
     H5VLrequest_wait(o->under, vol, timeout, status), if (outcome >= 0 && *status != H5VL_REQUEST_STATUS_IN_PROGRESS) cv_object_free(o))
ONCE(request_notify, (void *pointer, H5VL_request_notify_t call, void *context),
     NOTHING, H5VLrequest_notify(o->under, vol, call, context), FREE)
ONCE(request_cancel, (void *pointer, H5VL_request_status_t *status),
     NOTHING, H5VLrequest_cancel(o->under, vol, status), FREE)
ONCE(request_specific, (void *pointer, H5VL_request_specific_args_t *args),
     NOTHING, H5VLrequest_specific(o->under, vol, args), NOTHING)
ONCE(request_optional, (void *pointer, H5VL_optional_args_t *args),
     NOTHING, H5VLrequest_optional(o->under, vol, args), NOTHING)
ONCE(request_free, (void *pointer), NOTHING, H5VLrequest_free(o->under, vol), FREE)

const H5VL_request_class_t cv_request_class = {request_wait,     request_notify,   request_cancel,
                                               request_specific, request_optional, request_free};

/* ---- Blobs, tokens, and the generic optional operation. ---- */

ONCE(blob_put, (void *pointer, const void *data, size_t size, void *id, void *context),
     CHANGES, H5VLblob_put(o->under, vol, data, size, id, context), NOTHING)
ONCE(blob_get, (void *pointer, const void *id, void *data, size_t size, void *context),
     NOTHING, H5VLblob_get(o->under, vol, id, data, size, context), NOTHING)
ONCE(blob_specific, (void *pointer, void *id, H5VL_blob_specific_args_t *args),
     CHANGES, H5VLblob_specific(o->under, vol, id, args), NOTHING)
ONCE(blob_optional, (void *pointer, void *id, H5VL_optional_args_t *args),
     NOTHING, H5VLblob_optional(o->under, vol, id, args), NOTHING)

const H5VL_blob_class_t cv_blob_class = {blob_put, blob_get, blob_specific, blob_optional};

ONCE(token_cmp, (void *pointer, const H5O_token_t *a, const H5O_token_t *b, int *value),
     NOTHING, H5VLtoken_cmp(o->under, vol, a, b, value), NOTHING)
ONCE(token_to_str, (void *pointer, H5I_type_t type, const H5O_token_t *token, char **text),
     NOTHING, H5VLtoken_to_str(o->under, type, vol, token, text), NOTHING)
ONCE(token_from_str, (void *pointer, H5I_type_t type, const char *text, H5O_token_t *token),
     NOTHING, H5VLtoken_from_str(o->under, type, vol, text, token), NOTHING)

const H5VL_token_class_t cv_token_class = {token_cmp, token_to_str, token_from_str};

CALL(optional, (void *pointer, H5VL_optional_args_t *args, LATER),
     CHANGES, H5VLoptional(o->under, vol, args, dxpl, request), NOTHING)

herr_t (*const cv_optional)(void *, H5VL_optional_args_t *, hid_t, void **) = optional;
