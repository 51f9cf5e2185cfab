/* Writes to one base file by way of the staging log. The caller (HDF5's thread) appends to the log and goes
   on; a plain thread of this stage, which never calls HDF5, brings the records into the base file in order. */
#ifndef CACHEVOL_STAGE_H
#define CACHEVOL_STAGE_H

#include "store.h"

#include <stdbool.h>
#include <stdint.h>

struct cv_stage;

/* For the base file `path` (real path) open as `base`. Costs nothing until something is staged. `store` may be
   NULL: then everything goes direct. */
struct cv_stage *cv_stage_open(struct cv_store *store, const char *path, int base, uint64_t device,
                               uint64_t inode);

/* Each returns 0, or -1 with errno. `raw` tells data of datasets from HDF5's own. */
int cv_stage_write(struct cv_stage *stage, bool raw, uint64_t address, const void *data, uint64_t size);
int cv_stage_resize(struct cv_stage *stage, uint64_t size);

/* Before a read of the base file: 1 where `data` has been filled from the log, 0 where the base file holds
   what was written there, -1 with errno. */
int cv_stage_read(struct cv_stage *stage, uint64_t address, void *data, uint64_t size);

/* Waits until the base file holds everything that was staged. */
int cv_stage_drain(struct cv_stage *stage);

/* Nothing more is staged for this file: somebody asked for its descriptor. */
void cv_stage_stop(struct cv_stage *stage);

/* Drains and frees. On failure the log stays for `cachevol-log replay`; its name is put in `log`. */
int cv_stage_close(struct cv_stage *stage, char *log, size_t room);

/* Bytes of raw data in the log that no checkpoint of the metadata has followed yet, over all stages. */
uint64_t cv_stage_unflushed(void);
void     cv_stage_flushed(void);

#endif
