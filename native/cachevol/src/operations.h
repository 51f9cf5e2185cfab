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

/* Carries out one of them, on a file or dataset. */
herr_t cv_operation_run(H5VL_subclass_t of, struct cv_object *object, H5VL_optional_args_t *args, hid_t dxpl);

#endif
