/*
 * The HDF5 library, loaded when it is asked for: so the same program runs
 * with a serial library or a parallel one, or with none on the machine. What
 * is declared here is the part of HDF5's C interface that the program
 * calls; it has been the same since 1.10, whose identifiers have 64 bits.
 */
#ifndef IOKERNEL_HDF5_LIBRARY_H
#define IOKERNEL_HDF5_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef IOKERNEL_MPI
#include <mpi.h>
#endif

typedef int64_t hid_t;
typedef int herr_t;
typedef unsigned long long hsize_t;

enum { H5P_DEFAULT = 0, H5S_SELECT_SET = 0, H5F_SCOPE_LOCAL = 0, H5E_DEFAULT = 0, H5E_WALK_UPWARD = 0 };
enum { H5F_ACC_RDONLY = 0, H5F_ACC_RDWR = 1, H5F_ACC_TRUNC = 2 };

/* One entry of HDF5's stack of errors. */
struct hdf5_error {
    hid_t class, major, minor;
    unsigned line;
    const char *function, *file, *description;
};

typedef herr_t (*hdf5_visit)(unsigned number, const struct hdf5_error *error, void *data);

/* function(result, name, arguments) */
#define HDF5_FUNCTIONS(function)                                                                            \
    function(herr_t, H5open, (void))                                                                        \
    function(herr_t, H5get_libversion, (unsigned *major, unsigned *minor, unsigned *release))               \
    function(herr_t, H5Eset_auto2, (hid_t stack, void *visit, void *data))                                  \
    function(herr_t, H5Ewalk2, (hid_t stack, int direction, hdf5_visit visit, void *data))                  \
    function(hid_t, H5Fcreate, (const char *path, unsigned flags, hid_t creation, hid_t access))            \
    function(hid_t, H5Fopen, (const char *path, unsigned flags, hid_t access))                              \
    function(herr_t, H5Fflush, (hid_t file, int scope))                                                     \
    function(herr_t, H5Fget_vfd_handle, (hid_t file, hid_t access, void **handle))                          \
    function(herr_t, H5Fclose, (hid_t file))                                                                \
    function(hid_t, H5Gcreate2, (hid_t file, const char *name, hid_t link, hid_t creation, hid_t access))   \
    function(herr_t, H5Gclose, (hid_t group))                                                               \
    function(hid_t, H5Dcreate2,                                                                             \
             (hid_t file, const char *name, hid_t type, hid_t space, hid_t link, hid_t creation, hid_t access)) \
    function(hid_t, H5Dopen2, (hid_t file, const char *name, hid_t access))                                 \
    function(hid_t, H5Dget_space, (hid_t set))                                                              \
    function(herr_t, H5Dwrite,                                                                              \
             (hid_t set, hid_t type, hid_t memory, hid_t file, hid_t transfer, const void *data))           \
    function(herr_t, H5Dread, (hid_t set, hid_t type, hid_t memory, hid_t file, hid_t transfer, void *data)) \
    function(herr_t, H5Dclose, (hid_t set))                                                                 \
    function(hid_t, H5Screate_simple, (int rank, const hsize_t *size, const hsize_t *most))                 \
    function(herr_t, H5Sselect_hyperslab,                                                                   \
             (hid_t space, int operation, const hsize_t *start, const hsize_t *stride, const hsize_t *count, \
              const hsize_t *block))                                                                        \
    function(long long, H5Sget_simple_extent_npoints, (hid_t space))                                        \
    function(herr_t, H5Sclose, (hid_t space))                                                               \
    function(hid_t, H5Pcreate, (hid_t class))                                                               \
    function(herr_t, H5Pclose, (hid_t list))

struct hdf5 {
#define HDF5_MEMBER(result, name, arguments) result(*name) arguments;
    HDF5_FUNCTIONS(HDF5_MEMBER)
#undef HDF5_MEMBER
#ifdef IOKERNEL_MPI
    herr_t (*H5Pset_fapl_mpio)(hid_t list, MPI_Comm comm, MPI_Info info);
    herr_t (*H5Pset_dxpl_mpio)(hid_t list, int collective);
#endif
    /* of identifiers that the library makes when it is opened */
    const hid_t *long_long, *native_float, *native_uchar, *file_access, *dataset_transfer;
    bool parallel; /* built with the MPI of this program */
    char version[32];
};

/*
 * Loads the library `path` (NULL: the one that the system's loader finds) and opens it; once in a process.
 * NULL when it cannot be used, with a line that says why in `problem`.
 */
const struct hdf5 *hdf5_load(const char *path, char *problem, size_t size);

/* The library in use, or NULL. */
const struct hdf5 *hdf5_loaded(void);

/*
 * The errno that comes closest to what the library says of its last error; where it tells none, its own words are in
 * `problem`, which is empty else.
 */
int hdf5_explain(char *problem, size_t size);

#endif
