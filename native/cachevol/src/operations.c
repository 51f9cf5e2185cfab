#include "operations.h"
#include "config.h"
#include "copy.h"
#include "mpi_write.h"
#include "session.h"
#include "stage.h"
#include "stats.h"
#include "vol_point.h"

#include <stdlib.h>
#include <string.h>

#define MOST_AT_ONCE (UINT64_C(64) << 20) /* bytes that a prefetch holds in memory, where rows are smaller */

enum what { READ, PREFETCH, DROP, PAUSE, GO_ON, SETTLE, NOTHING };

/* In the order of `numbers`. Nothing is done where there is nothing to do: copies are made on first use, a close of a
   dataset or group waits for no migration, and nothing is mapped that could be mapped anew. */
static const struct {
    H5VL_subclass_t of;
    const char     *name;
    enum what       what;
} operations[] = {
    {H5VL_SUBCLS_DATASET, "anl.gov.cache.dread_to_cache", READ},
    {H5VL_SUBCLS_DATASET, "anl.gov.cache.dread_from_cache", READ},
    {H5VL_SUBCLS_DATASET, "anl.gov.cache.dprefetch", PREFETCH},
    {H5VL_SUBCLS_DATASET, "anl.gov.cache.dcache_remove", DROP},
    {H5VL_SUBCLS_DATASET, "anl.gov.cache.dcache_create", NOTHING},
    {H5VL_SUBCLS_DATASET, "anl.gov.cache.dmmap_remap", NOTHING},
    {H5VL_SUBCLS_DATASET, "anl.gov.dcache.async.op.pause", PAUSE},
    {H5VL_SUBCLS_DATASET, "anl.gov.dcache.async.op.start", GO_ON},
    {H5VL_SUBCLS_FILE, "anl.gov.fcache.create", NOTHING},
    {H5VL_SUBCLS_FILE, "anl.gov.fcache.remove", DROP},
    {H5VL_SUBCLS_FILE, "anl.gov.fcache.async.op.pause", PAUSE},
    {H5VL_SUBCLS_FILE, "anl.gov.fcache.async.op.start", GO_ON},
    {H5VL_SUBCLS_FILE, "anl.gov.fcache.async.close.set", NOTHING},
    {H5VL_SUBCLS_FILE, "anl.gov.fcache.async.close.wait", SETTLE},
};

enum { COUNT = sizeof operations / sizeof *operations };

static int  numbers[COUNT]; /* as HDF5 gave them; 0 where it did not */
static bool registered[COUNT];

void cv_operations_register(void)
{
    hid_t errors = cv_errors_keep();

    for (int i = 0; i < COUNT; i++) {
        /* The original may be the connector below: then its numbers are meant, and ours is the first to hear them. */
        registered[i] = h5.H5VLregister_opt_operation(operations[i].of, operations[i].name, &numbers[i]) >= 0;
        if (!registered[i] && h5.H5VLfind_opt_operation(operations[i].of, operations[i].name, &numbers[i]) < 0)
            numbers[i] = 0;
    }
    cv_errors_back(errors);
}

void cv_operations_forget(void)
{
    for (int i = 0; i < COUNT; i++) {
        if (registered[i])
            h5.H5VLunregister_opt_operation(operations[i].of, operations[i].name);
        registered[i] = false;
        numbers[i]    = 0;
    }
}

static int place_of(H5VL_subclass_t of, int operation)
{
    for (int i = 0; i < COUNT; i++)
        if (numbers[i] == operation && operation && operations[i].of == of)
            return i;
    return -1;
}

bool cv_operation_is_ours(H5VL_subclass_t of, int operation)
{
    return place_of(of, operation) >= 0;
}

/* The real path of the file that an object is in; false where it has none. */
static bool path_of(const struct cv_object *o, H5I_type_t type, hid_t dxpl, char path[PATH_MAX])
{
    char                 name[PATH_MAX];
    size_t               length = 0;
    H5VL_file_get_args_t get    = {.op_type       = H5VL_FILE_GET_NAME,
                                   .args.get_name = {type, sizeof name, name, &length}};

    return h5.H5VLfile_get(o->under, o->vol, &get, dxpl, NULL) >= 0 && length < sizeof name && realpath(name, path);
}

static herr_t read_into(cv_reading reads, struct cv_object *o, hid_t type, hid_t memory, hid_t space, hid_t dxpl, void *data)
{
    void *object = o;

    return reads(1, &object, &type, &memory, &space, dxpl, &data, NULL);
}

/* Reads what is selected, and throws it away: the copy keeps it. */
static herr_t read_selected(cv_reading reads, struct cv_object *o, hid_t type, hid_t space, hid_t dxpl)
{
    hssize_t points = h5.H5Sget_select_npoints(space);
    size_t   size   = h5.H5Tget_size(type);
    hsize_t  count  = (hsize_t)points;

    if (points <= 0)
        return (herr_t)points;
    void  *data    = malloc((size_t)count * size);
    hid_t  memory  = h5.H5Screate_simple(1, &count, NULL);
    herr_t outcome = data && memory >= 0 ? read_into(reads, o, type, memory, space, dxpl, data) : -1;
    if (!data)
        CV_OPEN_ERROR("no memory to prefetch %llu elements", (unsigned long long)count);
    if (memory >= 0)
        h5.H5Sclose(memory);
    free(data);
    return outcome;
}

/* As many rows at a time as fit into memory. */
static herr_t by_rows(cv_reading reads, struct cv_object *o, hid_t type, hid_t space, hid_t dxpl)
{
    hsize_t start[H5S_MAX_RANK], end[H5S_MAX_RANK], count[H5S_MAX_RANK], extent[H5S_MAX_RANK];
    int     rank  = h5.H5Sget_simple_extent_dims(space, extent, NULL);
    double  bytes = (double)h5.H5Sget_select_npoints(space) * (double)h5.H5Tget_size(type);

    if (rank <= 0 || bytes <= (double)MOST_AT_ONCE || h5.H5Sget_select_type(space) == H5S_SEL_POINTS)
        return read_selected(reads, o, type, space, dxpl);
    if (h5.H5Sget_select_bounds(space, start, end) < 0)
        return -1;
    hsize_t first = start[0], last = end[0];
    double  row   = bytes / (double)(last - first + 1);
    hsize_t rows  = row >= (double)MOST_AT_ONCE ? 1 : (hsize_t)((double)MOST_AT_ONCE / row);
    herr_t  outcome = 0;
    for (int i = 0; i < rank; i++)
        start[i] = 0, count[i] = extent[i];
    for (hsize_t at = first; at <= last && outcome >= 0; at += rows) {
        start[0]   = at;
        count[0]   = last - at < rows ? last - at + 1 : rows;
        hid_t part = h5.H5Scopy(space);
        outcome    = part >= 0 && h5.H5Sselect_hyperslab(part, H5S_SELECT_AND, start, NULL, count, NULL) >= 0
                         ? read_selected(reads, o, type, part, dxpl) : -1;
        if (part >= 0)
            h5.H5Sclose(part);
    }
    return outcome;
}

static herr_t prefetch(cv_reading reads, struct cv_object *o, hid_t selected, hid_t dxpl)
{
    H5VL_dataset_get_args_t type = {.op_type = H5VL_DATASET_GET_TYPE}, space = {.op_type = H5VL_DATASET_GET_SPACE};
    herr_t                  outcome = -1;

    type.args.get_type.type_id = space.args.get_space.space_id = H5I_INVALID_HID;
    if (h5.H5VLdataset_get(o->under, o->vol, &type, dxpl, NULL) >= 0 &&
        h5.H5VLdataset_get(o->under, o->vol, &space, dxpl, NULL) >= 0) {
        hid_t whole = space.args.get_space.space_id;
        /* Elements of variable length would leave memory behind; their descriptions alone are of no use. */
        outcome = cv_elements_are_whole(type.args.get_type.type_id)
                      ? by_rows(reads, o, type.args.get_type.type_id, selected == H5S_ALL ? whole : selected, dxpl)
                      : 0;
    }
    if (type.args.get_type.type_id >= 0)
        h5.H5Tclose(type.args.get_type.type_id);
    if (space.args.get_space.space_id >= 0)
        h5.H5Sclose(space.args.get_space.space_id);
    return outcome;
}

/* Arguments as the original's programs have them. */
struct read_args {
    hid_t type, memory, space;
    void *data;
};
struct prefetch_args {
    hid_t space;
};

/* What is done alike for both. */
static herr_t run(struct cv_object *o, H5I_type_t type, enum what what, hid_t dxpl)
{
    char path[PATH_MAX];

    if (what == NOTHING)
        return 0;
    if ((what != DROP && what != PAUSE && what != GO_ON) || !path_of(o, type, dxpl, path))
        return -1;
    if (what == DROP)
        cv_copy_drop(cv_session_store(), path);
    else
        cv_stage_hold(path, what == PAUSE);
    return 0;
}

/* HDF5 passes on the default transfer list as it was given. */
static hid_t transfer_of(hid_t dxpl)
{
    return dxpl == H5P_DEFAULT ? h5.transfer : dxpl;
}

herr_t cv_operation_on_dataset(struct cv_object *o, H5VL_optional_args_t *args, hid_t dxpl, cv_reading reads)
{
    enum what what = operations[place_of(H5VL_SUBCLS_DATASET, args->op_type)].what;

    CV_COUNT(asked, 1);
    dxpl = transfer_of(dxpl);
    if (what == READ && args->args) {
        const struct read_args *read = args->args;
        return read_into(reads, o, read->type, read->memory, read->space, dxpl, read->data);
    }
    if (what == PREFETCH && args->args)
        return prefetch(reads, o, ((const struct prefetch_args *)args->args)->space, dxpl);
    return run(o, H5I_DATASET, what, dxpl);
}

herr_t cv_operation_on_file(struct cv_object *o, H5VL_optional_args_t *args, hid_t dxpl, cv_flushing flushes)
{
    enum what                 what  = operations[place_of(H5VL_SUBCLS_FILE, args->op_type)].what;
    H5VL_file_specific_args_t flush = {.op_type = H5VL_FILE_FLUSH, .args.flush = {H5I_FILE, H5F_SCOPE_LOCAL}};

    CV_COUNT(asked, 1);
    dxpl = transfer_of(dxpl);
    return what == SETTLE ? flushes(o, &flush, dxpl, NULL) : run(o, H5I_FILE, what, dxpl);
}
