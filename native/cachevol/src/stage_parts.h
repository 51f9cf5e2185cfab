/* What the files of the stage share. From the bottom: what is pending and the base file (stage_pending.c), points
   (stage_point.c), the threads (stage_sum.c, stage_migrate.c), beginning and ending (stage.c), the caller's side
   (stage_write.c, stage_read.c). */
#ifndef CACHEVOL_STAGE_PARTS_H
#define CACHEVOL_STAGE_PARTS_H

#include "config.h"
#include "log.h"
#include "rates.h"
#include "stage.h"

#include <pthread.h>

#define CV_WORTH_STAGING (64 << 10) /* bytes before the first log is made; until then they are held in memory */
#define CV_MOST_PENDING  65536      /* records */
#define CV_PAUSE UINT64_C(1000000000) /* ns without tries after the node-local storage refused */

struct cv_pending {
    enum cv_record_kind kind;
    bool                raw;
    uint64_t            address, size;
    struct cv_place     place;
    char               *held; /* its data, while there is no log */
};

struct cv_stage {
    struct cv_store *store;
    struct cv_log   *log;
    char             path[PATH_MAX];
    int              base;
    uint64_t         device, inode;
    pid_t            owner;
    bool             off;       /* nothing is staged any more */
    bool             precious;  /* the base file is whole and not empty: only a log may change it */
    bool             mark;      /* HDF5's own mark of open files is in the base file */
    bool             wanted;    /* the next write begins the log */
    bool             shared;    /* of a parallel file: no points */
    bool             sums_late; /* the thread of checksums runs */
    uint64_t         raw;       /* bytes of data seen before staging began */
    uint64_t         paused_to; /* ticks */
    unsigned         direct_run;

    /* Points. */
    uint64_t changes;            /* cv_changes at the last one */
    bool     is_noted;           /* a whole flush came to its end */
    uint64_t unflushed, waiting; /* its part of cv_unflushed, cv_waiting */
    bool     pressed;

    /* Of a parallel file; under the lock. */
    uint64_t          call;
    _Atomic uint64_t *emptied;

    pthread_mutex_t    lock; /* over what follows */
    pthread_cond_t     work, sums, progress;
    pthread_t          thread, summer;
    bool               running, stop;
    bool               holds;  /* the program asked that nothing is migrated now */
    unsigned           wanted_by; /* threads that wait for what is */
    bool               leaves; /* the thread frees the stage: giving back the pages of a log takes a while */
    int                error; /* errno of a migration that failed; no more until the next drain tries again */
    struct cv_pending *ring;
    size_t             first, count, room;
    size_t             summed;    /* of the records, the first ones: no checksum is missing */
    uint64_t           summing;   /* sequence of the record whose checksum is being made, or 0 */
    uint64_t           appended;  /* ticks of the last record */
    bool               resting;   /* the thread of checksums waits until the program pauses */
    uint64_t           held;      /* bytes in memory */
    uint64_t           low, high; /* addresses of all that is pending lie in [low, high) */

    struct cv_stage *next, *previous; /* all stages of the process */
};

extern struct cv_stage *cv_stages;
extern pthread_mutex_t  cv_stages_lock;
extern struct cv_rate   cv_base_rate, cv_log_rate;

static inline struct cv_pending *cv_pending_at(const struct cv_stage *stage, size_t i)
{
    return &stage->ring[(stage->first + i) % stage->room];
}

/* The data of a pending write, or NULL with errno. Under the lock. */
static inline const char *cv_pending_data(const struct cv_pending *p)
{
    if (p->held)
        return p->held;
    const char *map = cv_segment_map(p->place.segment);
    return map ? map + p->place.at : NULL;
}

static inline uint64_t cv_pending_end(const struct cv_pending *p)
{
    return p->kind == CV_RECORD_RESIZE ? UINT64_MAX : p->address + p->size;
}

/* Frees the stage but for its log. */
void cv_stage_free(struct cv_stage *stage);

/* Whether this process is the one that stages (a fork's child is not). */
bool cv_stage_is_mine(const struct cv_stage *stage);

/* Whether the record may go to the base file now. Under the lock, with a log. */
bool cv_may_go(const struct cv_stage *stage, const struct cv_pending *p);

/* Around a change of the base file: whoever asks later whether somebody else changed it is told when we did. */
uint64_t cv_change_begins(struct cv_stage *stage);
void cv_change_ends(struct cv_stage *stage, uint64_t begun);
/* Writes to the base file, telling the log when. 0, or -1 with errno. */
int cv_base_write(struct cv_stage *stage, uint64_t address, const void *data, uint64_t size);
int cv_base_resize(struct cv_stage *stage, uint64_t size);

/* The two threads: one brings records to the base file, the other makes checksums. */
void *cv_migrate(void *stage);
void *cv_make_sums(void *stage);

/* Makes log, marker and thread, and moves what is held into the log; where that fails, everything is in the base
   file or still held, and is written directly from then on. 0 where there is a log now; 1 where there is none;
   -1 with errno. */
int cv_stage_begin(struct cv_stage *stage);

/* Whether what is held must go by a log: several writes that change a file worth keeping are all there or none. */
bool cv_needs_log(const struct cv_stage *stage);

/* Everything pending may go to the base file although it is not whole there yet. Under the lock. */
void cv_force(struct cv_stage *stage);
/* Waits until the base file holds all that may go; with `force`, all. 0, or -1 with errno. */
int cv_drain(struct cv_stage *stage, bool force);
/* Waits until some of what is pending has been migrated. Under the lock. */
void cv_await_progress(struct cv_stage *stage);
/* Forgets the first `taken` records. Under the lock. */
void cv_pending_taken(struct cv_stage *stage, size_t taken);
/* Adds a record. Under the lock. 0, or ENOMEM. */
int cv_pending_add(struct cv_stage *stage, const struct cv_pending *p);
/* Index of the newest pending record that overlaps the range, or -1. Under the lock. */
long cv_overlapping(const struct cv_stage *stage, uint64_t address, uint64_t size);
/* Writes what is held in memory to the base file. Under the lock. 0, or an errno. */
int cv_held_to_base(struct cv_stage *stage);

/* Whether records wait for points at which the file is whole. */
static inline bool cv_has_points(const struct cv_stage *stage)
{
    return cv_config.checkpoint && !stage->shared;
}

/* Counts a record that was logged; data written; and what the log holds is whole again. Under the lock. */
void cv_point_count(struct cv_stage *stage, const struct cv_pending *p);
void cv_point_count_data(struct cv_stage *stage, uint64_t size);
void cv_point_reached(struct cv_stage *stage);
/* Whether data written now are safe (see stage.h). */
bool cv_point_is_safe(const struct cv_stage *stage);

#endif
