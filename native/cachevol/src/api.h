/* The functions of the libhdf5 that loaded the connector, found at run time: the connector is linked to
   none, so that one file serves HDF5 1.14 and 2.x and a wheel's renamed library alike. */
#ifndef CACHEVOL_API_H
#define CACHEVOL_API_H

#include <H5public.h>

#include <H5Dpublic.h>
#include <H5Epublic.h>
#include <H5FDdevelop.h>
#include <H5FDsec2.h>
#include <H5Fpublic.h>
#include <H5Ipublic.h>
#include <H5Ppublic.h>
#include <H5Spublic.h>
#include <H5Tpublic.h>
#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#define CV_API(X)                                                                                            \
    X(H5allocate_memory) X(H5Eget_num) X(H5Eget_current_stack) X(H5Eset_current_stack) X(H5Eclear2) X(H5Epush2) \
    X(H5Eget_auto2) X(H5Eset_auto2)                                                                          \
    X(H5Eclose_stack)                                                                                        \
    X(H5FDregister) X(H5FDopen) X(H5FDclose) X(H5FDcmp) X(H5FDquery) X(H5FDget_vfd_handle) X(H5FDread)       \
    X(H5FDwrite) X(H5FDlock) X(H5FDunlock) X(H5FDset_eoa) X(H5Iinc_ref) X(H5Idec_ref) X(H5Iis_valid)         \
    X(H5Pcopy) X(H5Pclose) X(H5Pget_vol_info) X(H5Pset_vol) X(H5Pget_driver) X(H5Pset_driver)                \
    X(H5Pget_driver_info) X(H5Pset_fapl_sec2) X(H5Pexist) X(H5Pget) X(H5Pget_size) X(H5Pget_layout)          \
    X(H5Pget_nfilters) X(H5Pget_chunk) X(H5Pget_alloc_time) X(H5Pget_external_count) X(H5Pget_file_space_strategy)                \
    X(H5Sget_select_npoints) X(H5Sget_select_bounds) X(H5Sget_select_type) X(H5Sget_simple_extent_ndims)      \
    X(H5Sget_simple_extent_dims) X(H5Sclose) X(H5Scopy) X(H5Screate_simple) X(H5Sselect_hyperslab) X(H5Tget_size)                                                   \
    X(H5Tdetect_class) X(H5Tclose)                                                                           \
    X(H5VLregister_connector_by_value) X(H5VLget_value) X(H5VLcmp_connector_cls)                             \
    X(H5VLcopy_connector_info) X(H5VLcmp_connector_info) X(H5VLfree_connector_info)                          \
    X(H5VLconnector_info_to_str) X(H5VLconnector_str_to_info) X(H5VLget_object) X(H5VLget_wrap_ctx)          \
    X(H5VLwrap_object) X(H5VLunwrap_object) X(H5VLfree_wrap_ctx) X(H5VLattr_create) X(H5VLattr_open)         \
    X(H5VLattr_read) X(H5VLattr_write) X(H5VLattr_get) X(H5VLattr_specific) X(H5VLattr_optional)             \
    X(H5VLattr_close) X(H5VLdataset_create) X(H5VLdataset_open) X(H5VLdataset_read) X(H5VLdataset_write)     \
    X(H5VLdataset_get) X(H5VLdataset_specific) X(H5VLdataset_optional) X(H5VLdataset_close)                  \
    X(H5VLdatatype_commit) X(H5VLdatatype_open) X(H5VLdatatype_get) X(H5VLdatatype_specific)                 \
    X(H5VLdatatype_optional) X(H5VLdatatype_close) X(H5VLfile_create) X(H5VLfile_open) X(H5VLfile_get)       \
    X(H5VLfile_specific) X(H5VLfile_optional) X(H5VLfile_close) X(H5VLgroup_create) X(H5VLgroup_open)        \
    X(H5VLgroup_get) X(H5VLgroup_specific) X(H5VLgroup_optional) X(H5VLgroup_close) X(H5VLlink_create)       \
    X(H5VLlink_copy) X(H5VLlink_move) X(H5VLlink_get) X(H5VLlink_specific) X(H5VLlink_optional)              \
    X(H5VLobject_open) X(H5VLobject_copy) X(H5VLobject_get) X(H5VLobject_specific) X(H5VLobject_optional)    \
    X(H5VLintrospect_get_conn_cls) X(H5VLintrospect_get_cap_flags) X(H5VLintrospect_opt_query)               \
    X(H5VLrequest_wait) X(H5VLrequest_notify) X(H5VLrequest_cancel) X(H5VLrequest_specific)                  \
    X(H5VLrequest_optional) X(H5VLrequest_free) X(H5VLblob_put) X(H5VLblob_get) X(H5VLblob_specific)         \
    X(H5VLblob_optional) X(H5VLtoken_cmp) X(H5VLtoken_to_str) X(H5VLtoken_from_str) X(H5VLoptional)             \
    X(H5VLregister_opt_operation) X(H5VLunregister_opt_operation) X(H5VLfind_opt_operation)

struct cv_api {
#define POINTER(name) __typeof__(&name) name;
    CV_API(POINTER)
#undef POINTER
    hid_t transfer; /* the default list for reads and writes; like what follows a variable of the library */
    /* Numbers of the error stack. */
    hid_t error_class, major_io, major_file, minor_write, minor_open;
    void *library; /* as dlsym takes it */
    herr_t (*driver_query)(hid_t, unsigned long *); /* H5FDdriver_query, NULL where there is none */
};

extern struct cv_api h5;

/* Fills `h5` from the library that the code at `caller` belongs to. Returns 0, or -1 with a sentence. */
int cv_api_load(const void *caller, char *why, size_t room);

/* Between the two, what is on HDF5's error stack is kept, and what comes to it is dropped. Where it is empty, as it
   nearly always is, that costs nothing; to ask for the stack each time took longer than a small read. */
hid_t cv_errors_keep(void);
void  cv_errors_back(hid_t kept);

/* Puts an error with this sentence on HDF5's stack. */
void cv_error_write(const char *where, unsigned line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cv_error_open(const char *where, unsigned line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define CV_WRITE_ERROR(...) cv_error_write(__func__, __LINE__, __VA_ARGS__)
#define CV_OPEN_ERROR(...)  cv_error_open(__func__, __LINE__, __VA_ARGS__)

#endif
