/* Copying what was read to the node-local storage, by one thread of the process that never calls HDF5. */
#ifndef CACHEVOL_FILL_H
#define CACHEVOL_FILL_H

#include "copy.h"

/* Memory for `size` bytes on their way to a copy; NULL where as much as is allowed is on its way already. */
void *cv_fill_buffer(uint64_t size);
void  cv_fill_cancel(void *buffer, uint64_t size);

/* Hands over a buffer with what the base file holds from `address`, whole blocks or the end of the file. */
void cv_fill(struct cv_copy *copy, uint64_t address, void *buffer, uint64_t size);

/* Copies what nobody has read yet while nothing else is to do. */
void cv_fill_ahead(struct cv_copy *copy);
void cv_fill_forget(struct cv_copy *copy);

/* Cleans up the folder of copies (cv_copy_sweep) while nothing else is to do. */
void cv_fill_sweep(struct cv_store *store);

/* Waits until everything that was handed over is in the copies. */
void cv_fill_finish(void);
/* Waits until the folder of copies is clean, but not long. */
void cv_fill_swept(void);

#define CV_PIECE (UINT64_C(4) << 20) /* bytes: the most that one read of the base file brings */

#endif
