/* The connector's class and its entry points: what HDF5 finds when it loads the file. */
#include "config.h"
#include "driver.h"
#include "fill.h"
#include "object.h"
#include "operations.h"
#include "session.h"
#include "stats.h"

#include <H5PLpublic.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONNECTOR_VALUE 497 /* 256 to 511: not registered with The HDF Group */

/* The original's name and number: a program that is set up for it gets this connector, where this is in the path. */
#define ORIGINAL       "cache_ext"
#define ORIGINAL_VALUE 513

static bool as_original(void)
{
    const char *asked = getenv("HDF5_VOL_CONNECTOR");

    return asked && !strncmp(asked, ORIGINAL, strlen(ORIGINAL)) && strcspn(asked, " ") == strlen(ORIGINAL);
}

static herr_t initialize(hid_t vipl)
{
    (void)vipl;
    cv_session_configure(NULL);
    cv_operations_register();
    if (cv_config.stats[0])
        cv_stats_begin(cv_config.stats);
    return cv_driver_register();
}

static herr_t terminate(void)
{
    cv_fill_finish();
    cv_fill_swept();
    cv_operations_forget();
    if (cv_config.stats[0])
        cv_stats_write(cv_config.stats);
    return 0;
}

#define ENTRY __attribute__((visibility("default")))

ENTRY H5PL_type_t H5PLget_plugin_type(void);
ENTRY const void *H5PLget_plugin_info(void);
ENTRY const void *cachevol_describe(void *caller); /* as H5PLget_plugin_info, for the library with this code in it */

/* In code, since in C the members of other objects are no constants. */
static void describe(void)
{
    cv_class = (H5VL_class_t){
        .version        = H5VL_VERSION,
        .value          = as_original() ? ORIGINAL_VALUE : CONNECTOR_VALUE,
        .name           = as_original() ? ORIGINAL : "tiercel_cachevol",
        .conn_version   = 1,
        .cap_flags      = H5VL_CAP_FLAG_NONE,
        .initialize     = initialize,
        .terminate      = terminate,
        .info_cls       = cv_info_class,
        .wrap_cls       = cv_wrap_class,
        .attr_cls       = cv_attr_class,
        .dataset_cls    = cv_dataset_class,
        .datatype_cls   = cv_datatype_class,
        .file_cls       = cv_file_class,
        .group_cls      = cv_group_class,
        .link_cls       = cv_link_class,
        .object_cls     = cv_object_class,
        .introspect_cls = cv_introspect_class,
        .request_cls    = cv_request_class,
        .blob_cls       = cv_blob_class,
        .token_cls      = cv_token_class,
        .optional       = cv_optional,
    };
}

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_VOL;
}

/* A copy of this very object, for a second libhdf5 in the process (h5py beside PyTables or netCDF4): the functions
   of the first must not be called with the second's objects. */
static const void *another_copy(void *caller)
{
    Dl_info here;
    char    path[64], block[65536];
    int     memory = memfd_create("cachevol", MFD_CLOEXEC);
    FILE   *file   = dladdr((void *)&cv_class, &here) ? fopen(here.dli_fname, "re") : NULL;
    size_t  got    = 0;

    while (file && memory >= 0 && (got = fread(block, 1, sizeof block, file)) > 0)
        if (write(memory, block, got) != (ssize_t)got)
            break;
    if (file)
        fclose(file);
    if (!file || memory < 0 || got)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory); /* stays open: its number names the copy */
    void *copy                     = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *(*entry)(void *) = copy ? (const void *(*)(void *))dlsym(copy, "cachevol_describe") : NULL;
    return entry ? entry(caller) : NULL;
}

const void *cachevol_describe(void *caller)
{
    static void *library;
    Dl_info      where;
    char         why[512];

    if (!dladdr(caller, &where))
        return NULL;
    if (library && library != where.dli_fbase)
        return another_copy(caller);
    if (!library) {
        if (cv_api_load(caller, why, sizeof why)) {
            fprintf(stderr, "cachevol: %s\n", why);
            return NULL;
        }
        library = where.dli_fbase;
        describe();
    }
    return &cv_class;
}

const void *H5PLget_plugin_info(void)
{
    return cachevol_describe(__builtin_return_address(0));
}
