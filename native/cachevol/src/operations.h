/* The operations that programs written for the HDF5 Cache VOL (cache_new_h5api.h) ask for by name: H5Dprefetch,
   H5Dread_to_cache, H5Fcache_async_op_pause and the rest. Their names and arguments are the original's. */
#ifndef CACHEVOL_OPERATIONS_H
#define CACHEVOL_OPERATIONS_H

#include "object.h"

/* Makes the names known to HDF5, and forgets them. */
void cv_operations_register(void);
void cv_operations_forget(void);

/* Whether an operation is one of them. */
bool cv_operation_is_ours(H5VL_subclass_t of, int operation);

/* How the caller, vol_dataset.c or vol_file.c, reads a dataset and flushes a file. */
typedef herr_t (*cv_reading)(size_t count, void *datasets[], hid_t types[], hid_t spaces[], hid_t file_spaces[], hid_t dxpl,
                             void *data[], void **request);
typedef herr_t (*cv_flushing)(void *file, H5VL_file_specific_args_t *args, hid_t dxpl, void **request);

/* Carries out one of them: on a dataset, which is read by `reads`; on a file, which is flushed by `flushes`. */
herr_t cv_operation_on_dataset(struct cv_object *dataset, H5VL_optional_args_t *args, hid_t dxpl, cv_reading reads);
herr_t cv_operation_on_file(struct cv_object *file, H5VL_optional_args_t *args, hid_t dxpl, cv_flushing flushes);

#endif
