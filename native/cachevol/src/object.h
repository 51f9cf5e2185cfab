/* The objects that the connector gives to HDF5: what the connector below gave, and which connector that is. */
#ifndef CACHEVOL_OBJECT_H
#define CACHEVOL_OBJECT_H

#include "api.h"

#include <stdbool.h>
#include <stdint.h>

/* Where and how a dataset lies in a parallel file. */
struct cv_storage {
    bool          filtered;     /* compressed, for instance */
    bool          late;         /* and takes its space when it is first written to, all at once */
    bool          known, named; /* looked at; it has a name */
    bool          plain;        /* elements of a fixed size in the file itself, */
    bool          chunked;      /* in chunks of this shape: */
    hsize_t       chunk[H5S_MAX_RANK];
    size_t        element_size; /* bytes */
    unsigned long file;         /* HDF5's number of the open file */
    uint64_t      address;      /* of its header */
};

struct cv_object {
    void *under;  /* NULL for a file that was closed below although closing it failed */
    hid_t vol;
    bool  closed; /* closing it failed: HDF5 keeps its number, and closes it once more, at its own end at the latest */
    /* Of a dataset, once they have been asked for: */
    int      layout;       /* else -1 */
    bool     plain;        /* elements of a fixed size that are stored as they are */
    size_t   element_size; /* bytes in the file */
    uint64_t nameless;     /* 1 + links made before it was created without a name; else 0 */
    enum { CV_UNKNOWN, CV_YES, CV_NO } alone; /* of a parallel file that each process reads by itself */
    struct cv_storage *storage; /* of one in a parallel file that is written to, once asked for */
    uint64_t settled;      /* cv_changes at a point after which its place in the file no longer changes */
};

/* What `HDF5_VOL_CONNECTOR="tiercel_cachevol config=FILE;under_vol=N;under_info={...}"` says. */
struct cv_info {
    hid_t vol;
    void *info;
    char *config;
    int   missing; /* number of the connector that should be below, and is not there; else 0 */
};

struct cv_object *cv_object_new(void *under, hid_t vol);
void              cv_object_free(struct cv_object *object);

/* Wraps what came from below; NULL stays NULL. */
static inline void *cv_wrap(void *under, hid_t vol)
{
    return under ? cv_object_new(under, vol) : NULL;
}

static inline void cv_wrap_request(void **request, hid_t vol)
{
    if (request && *request)
        *request = cv_object_new(*request, vol);
}

/* What HDF5 knows of an object (H5O_INFO_BASIC); false where it does not. The error stack stays as it is. */
bool cv_object_info(const struct cv_object *object, H5I_type_t type, hid_t dxpl, H5O_info2_t *info);
bool cv_object_info_at(const struct cv_object *object, const H5VL_loc_params_t *where, hid_t dxpl, H5O_info2_t *info);

/* Whether elements of a type hold their own data: those of variable length lie in heaps, whose space is used again. */
bool cv_elements_are_whole(hid_t type);

/* An id of the native connector, counted: the caller gives it back with H5Idec_ref. */
hid_t cv_native(void);

extern H5VL_class_t cv_class; /* this connector, once connector.c has described it */

extern const H5VL_info_class_t     cv_info_class;
extern const H5VL_wrap_class_t     cv_wrap_class;
extern const H5VL_attr_class_t     cv_attr_class;
extern const H5VL_dataset_class_t  cv_dataset_class;
extern const H5VL_datatype_class_t cv_datatype_class;
extern const H5VL_file_class_t     cv_file_class;
extern const H5VL_group_class_t    cv_group_class;
extern const H5VL_link_class_t     cv_link_class;
extern const H5VL_object_class_t   cv_object_class;
extern const H5VL_introspect_class_t cv_introspect_class;
extern const H5VL_request_class_t  cv_request_class;
extern const H5VL_blob_class_t     cv_blob_class;
extern const H5VL_token_class_t    cv_token_class;

extern herr_t (*const cv_optional)(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **request);

#endif
