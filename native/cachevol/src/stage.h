/* Writes to one base file by way of the staging log. The caller (HDF5's thread) appends to the log and goes
   on; a plain thread of this stage, which never calls HDF5, brings the records into the base file in order.

   The log is a redo log with points at which the file is whole: after HDF5 has flushed all that it holds of the
   file. Records go to the base file, and are replayed after a kill, only up to the last such point; behind it
   only data of datasets that are safe, which is to say that they were written while nothing but reads and
   writes of plain datasets had happened since the point: then their space is free in the whole state, or is
   theirs. Everything else may free space that the whole state still refers to. */
#ifndef CACHEVOL_STAGE_H
#define CACHEVOL_STAGE_H

#include "store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cv_stage;

/* For the base file `path` (real path) of `size` bytes, open as `base`. Costs nothing until something is
   staged. `store` may be NULL: then everything goes direct. */
struct cv_stage *cv_stage_open(struct cv_store *store, const char *path, int base, uint64_t device,
                               uint64_t inode, uint64_t size);

/* The same for one process of several that write to the file by MPI: HDF5 keeps its metadata there itself, so there are
   no points, no marker and nothing to replay, and all that is staged may go to the base file at any time. */
struct cv_stage *cv_stage_open_shared(struct cv_store *store, const char *path, int base, uint64_t device,
                                      uint64_t inode);
/* All data up to this call have been staged. `emptied[CV_STAGE_THERE]` becomes the number of the last such call whose data,
   and all before, are in the base file; with CV_STAGE_FAILED added while they cannot be written. Another process writes
   in `emptied[CV_STAGE_ASKED]` for which call it waits: then a program's wish that nothing is migrated does not count. */
#define CV_STAGE_FAILED (UINT64_C(1) << 63)
enum { CV_STAGE_THERE, CV_STAGE_ASKED, CV_STAGE_WORDS };
void cv_stage_called(struct cv_stage *stage, uint64_t call, _Atomic uint64_t *emptied);

/* Each returns 0, or -1 with errno. `raw` tells data of datasets from HDF5's own. */
int cv_stage_write(struct cv_stage *stage, bool raw, uint64_t address, const void *data, uint64_t size);
int cv_stage_resize(struct cv_stage *stage, uint64_t size);

/* Before a read of the base file: 1 where `data` has been filled with what is pending over what the base file
   holds, 0 where nothing in the range is pending, -1 with errno. */
int cv_stage_read(struct cv_stage *stage, uint64_t address, void *data, uint64_t size);

/* HDF5 marked the file as open, and other programs must see that now. */
int cv_stage_opened(struct cv_stage *stage);
/* HDF5 flushed a part of the file or all of it, and no points are made (HDF5_CACHE_CHECKPOINT=no). */
int cv_stage_drain(struct cv_stage *stage);
/* HDF5 flushed all of it: a point, once the whole call has succeeded (cv_stages_whole). */
void cv_stage_noted(struct cv_stage *stage);

/* The program asks that what it stages for a file is not migrated now, and later that it is. Whoever waits for it (a flush,
   a close, a read, a log that is full) does not wait: then it is migrated all the same. */
void cv_stage_hold(const char *path, bool hold);

/* Nothing more is staged for this file: somebody asked for its descriptor. */
int cv_stage_stop(struct cv_stage *stage);

/* Drains and frees. On failure the log stays for `cachevol-log replay`; its name is put in `log`, which is
   empty where there is none. */
int cv_stage_close(struct cv_stage *stage, char *log, size_t room);

/* ---- All stages of the process. ---- */

/* Counts what may free space in some file; cv_changing() is called before it. */
extern _Atomic uint64_t cv_changes;

static inline void cv_changing(void)
{
    atomic_fetch_add_explicit(&cv_changes, 1, memory_order_relaxed);
}

/* From now on no data are safe: some file keeps its free space across openings, which HDF5 then moves about. */
void cv_never_safe(void);

/* Whether any file is staged for; whether all data written now would be safe, as far as a point can make them. */
bool cv_stages_any(void);
/* Whether a file lacks anything that was staged for it by this process alone. */
bool cv_stages_pending(void);
bool cv_stages_unchanged(void);

/* Whether the base storage takes large data about as fast as the log does, so that staging them gains nothing. */
bool cv_base_is_fast(void);

/* The next write to any file begins its log, however small: what follows is large. */
void cv_stages_want_logs(void);

/* Before a flush: what failed is tried again. */
void cv_stages_retry(void);

/* After a flush that succeeded: what was noted is a point. With `drain`, waits until the base files hold
   everything up to it. 0; -1 with errno; 1 where there is no point since a file without a log is still held. */
int cv_stages_whole(bool drain);

/* Over all stages, bytes behind the last points: data of datasets; what waits for the next point. */
extern _Atomic uint64_t cv_unflushed, cv_waiting;
/* Some stage has so much waiting that a point is due whatever it costs. */
bool cv_stages_pressed(void);

#endif
