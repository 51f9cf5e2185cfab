#include "hdf5_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

static struct hdf5 library;
static bool loaded;

const struct hdf5 *hdf5_loaded(void)
{
    return loaded ? &library : NULL;
}

/*
 * A name as a linked program would find it: a tracer that is loaded before everything else (Darshan, Recorder) and
 * has functions of the same names sees the calls.
 */
static void *found(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static const char *resolve(void)
{
    /* ISO C has no conversion from void * to a function; POSIX promises that they are of one size. */
#define HDF5_RESOLVE(result, name, arguments)                                                                \
    {                                                                                                        \
        void *address = found(#name);                                                                        \
        if (!address)                                                                                        \
            return #name;                                                                                    \
        memcpy(&library.name, &address, sizeof address);                                                     \
    }
    HDF5_FUNCTIONS(HDF5_RESOLVE)
#undef HDF5_RESOLVE
    library.long_long = found("H5T_NATIVE_LLONG_g");
    library.native_float = found("H5T_NATIVE_FLOAT_g");
    library.native_uchar = found("H5T_NATIVE_UCHAR_g");
    library.file_access = found("H5P_CLS_FILE_ACCESS_ID_g");
    library.dataset_transfer = found("H5P_CLS_DATASET_XFER_ID_g");
    if (!library.long_long || !library.native_float || !library.native_uchar || !library.file_access || !library.dataset_transfer)
        return "its type and property list identifiers";
    return NULL;
}

#ifdef IOKERNEL_MPI
/* Whether the library was built with the MPI of this program: it takes handles of MPI from it. */
static bool same_mpi(void *handle)
{
    static char ours[MPI_MAX_LIBRARY_VERSION_STRING], theirs[MPI_MAX_LIBRARY_VERSION_STRING];
    int (*version)(char *, int *), length = 0;
    void *address = dlsym(handle, "MPI_Get_library_version");
    if (!address)
        return false;
    memcpy(&version, &address, sizeof address);
    return version(theirs, &length) == MPI_SUCCESS && MPI_Get_library_version(ours, &length) == MPI_SUCCESS &&
           strcmp(ours, theirs) == 0;
}
#endif

static void resolve_parallel(void *handle)
{
    library.parallel = false;
#ifdef IOKERNEL_MPI
    void *access = found("H5Pset_fapl_mpio"), *transfer = found("H5Pset_dxpl_mpio");
    if (!access || !transfer || !same_mpi(handle))
        return;
    memcpy(&library.H5Pset_fapl_mpio, &access, sizeof access);
    memcpy(&library.H5Pset_dxpl_mpio, &transfer, sizeof transfer);
    library.parallel = true;
#else
    (void)handle;
#endif
}

const struct hdf5 *hdf5_load(const char *path, char *problem, size_t size)
{
    if (loaded)
        return &library;
    void *handle = dlopen(path ? path : "libhdf5.so", RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        snprintf(problem, size, "the HDF5 library cannot be loaded: %s", dlerror());
        return NULL;
    }
    const char *missing = resolve();
    if (missing) {
        snprintf(problem, size, "%s is no HDF5 library of 1.10 or newer: it lacks %s", path ? path : "libhdf5.so",
                 missing);
        return NULL;
    }
    unsigned major = 0, minor = 0, release = 0;
    if (library.H5get_libversion(&major, &minor, &release) < 0 || library.H5open() < 0) {
        snprintf(problem, size, "%s: HDF5 does not start", path ? path : "libhdf5.so");
        return NULL;
    }
    if (major < 1 || (major == 1 && minor < 10)) {
        snprintf(problem, size, "HDF5 %u.%u.%u is too old: 1.10 or newer", major, minor, release);
        return NULL;
    }
    snprintf(library.version, sizeof library.version, "%u.%u.%u", major, minor, release);
    library.H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* errors are told once, by us */
    resolve_parallel(handle);
    loaded = true;
    return &library;
}

struct words {
    char *text;
    size_t size;
};

/* Keeps the innermost error, where the system's own words are. */
static herr_t innermost(unsigned number, const struct hdf5_error *error, void *data)
{
    struct words *words = data;
    if (number == 0)
        snprintf(words->text, words->size, "%s", error->description ? error->description : "");
    return 0;
}

int hdf5_explain(char *problem, size_t size)
{
    struct words words = {problem, size};
    problem[0] = '\0';
    library.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &words);
    const char *number = strstr(problem, "errno = ");
    int error = number ? atoi(number + strlen("errno = ")) : error_in_words(problem);
    if (error <= 0) {
        if (!problem[0])
            snprintf(problem, size, "HDF5 failed without saying why");
        return EIO;
    }
    problem[0] = '\0';
    return error;
}
