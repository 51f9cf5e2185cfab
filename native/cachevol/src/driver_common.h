/* What the driver for plain files and the one for parallel files do alike. */
#ifndef CACHEVOL_DRIVER_COMMON_H
#define CACHEVOL_DRIVER_COMMON_H

#include "api.h"
#include "reader.h"

/* What HDF5 holds of an open file; each driver's own part follows. */
struct cv_driver_file {
    H5FD_t            pub; /* HDF5's part, first */
    int               fd;
    haddr_t           eoa, eof;
    struct cv_reader *reader; /* NULL where nothing is cached */
};

/* What is the same in both tables that HDF5 gets. */
#define CV_DRIVER_ALIKE                                          \
    .version = H5FD_CLASS_VERSION,                               \
    .maxaddr = ((haddr_t)1 << (8 * sizeof(off_t) - 1)) - 1,      \
    .get_eoa = cv_driver_get_eoa,                                \
    .get_eof = cv_driver_get_eof,                                \
    .ctl     = cv_driver_ctl,                                    \
    .fl_map  = H5FD_FLMAP_DICHOTOMY

/* The features of both. */
#define CV_DRIVER_FEATURES                                                                                 \
    (H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |                 \
     H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE)

/* Becomes true where a driver closes a file, also where that fails: after it nothing of the file is to be asked for. */
extern bool cv_driver_closed;

haddr_t cv_driver_get_eoa(const H5FD_t *file, H5FD_mem_t type);
haddr_t cv_driver_get_eof(const H5FD_t *file, H5FD_mem_t type);

/* Answers HDF5's questions to a driver: to none that must be understood. */
herr_t cv_driver_ctl(H5FD_t *file, uint64_t op, uint64_t flags, const void *input, void **output);

/* Reads by way of the copy, or from the file; behind its end there are zeros. Returns 0, or -1 with errno. */
int cv_driver_get(struct cv_driver_file *file, haddr_t address, size_t size, void *data);

/* Has the library know a driver, also after it was closed and began anew: `*id` is its number. Returns 0, or -1. */
int cv_driver_know(hid_t *id, const H5FD_class_t *table);

/* Whether an access list asks for the driver of this number. */
bool cv_driver_asked(hid_t fapl, hid_t id);

#endif
