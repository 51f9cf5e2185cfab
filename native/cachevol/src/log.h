/* The staging log: what HDF5 wrote and the base file does not hold yet, in order.

   <store>/logs/<id>/control      who stages for which file, and how far the base file has come (two pages)
   <store>/logs/<id>/segment-<n>  records, each a head of 64 bytes and its data (see cv_record_data)

   A record counts once its head is there with the right checksums and the next sequence number; the head is
   written last, so that a kill leaves no head without its data. The checksum of large data, which only tells what a
   node lost that crashed, is put into the head a moment later, by a thread (cv_log_sum). Segments are used again once the base file holds all of their records; what an earlier use
   left behind the end has older sequence numbers. */
#ifndef CACHEVOL_LOG_H
#define CACHEVOL_LOG_H

#include "store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define CV_LOG_MAGIC    UINT64_C(0x33474f4c4c4f5643) /* "CVOLLOG3" */
#define CV_RECORD_MAGIC UINT64_C(0x3143455256435643)
#define CV_CONTROL_SIZE 8192
#define CV_SEGMENT_SIZE (UINT64_C(32) << 20) /* bytes */
#define CV_RECORD_DATA  (UINT64_C(4) << 20)  /* most bytes of data in one record */

/* CV_RECORD_SAFE: data of a dataset in space that nothing else of the last whole state refers to, so that the
   base file may have them before the next point at which it is whole. */
enum cv_record_kind { CV_RECORD_WRITE = 1, CV_RECORD_RESIZE = 2, CV_RECORD_SAFE = 3 };

struct cv_record {
    uint64_t magic;
    uint64_t nonce;    /* of the log */
    uint64_t sequence; /* 1, 2, 3... */
    uint64_t address;  /* in the base file; of a resize: its new size */
    uint64_t size;     /* bytes of data */
    uint64_t kind;
    uint64_t data_sum; /* 0: not made yet */
    uint64_t head_sum; /* of the fields before data_sum */
};

struct cv_control {
    uint64_t         magic;
    uint64_t         nonce;
    uint64_t         pid, pid_start;
    uint64_t         created;  /* ns since 1970 */
    uint64_t         device, inode;
    _Atomic uint64_t done;     /* the base file holds the records up to this one */
    _Atomic uint64_t appended; /* the log holds the records up to this one */
    _Atomic uint64_t touched;  /* ns since 1970: when this process last changed the base file */
    _Atomic uint64_t changing; /* not 0: it is changing the base file right now */
    _Atomic uint64_t failed;   /* errno of a migration that failed */
    _Atomic uint64_t whole;    /* with the records up to this one the base file is whole (see stage.h) */
    _Atomic uint64_t forced;   /* not 0: records went to the base file before it was whole again */
    char             id[128];
    char             host[64];
    char             boot[40];
    char             path[PATH_MAX]; /* of the base file */
};

#define CV_RECORD_LARGE (128 << 10) /* bytes of data from which on they begin on a page of their own */

/* Where the data of a record at `at` begin: a large one's on the next page, since a file system takes whole pages
   faster than parts of them. */
static inline uint64_t cv_record_data(uint64_t at, uint64_t size)
{
    uint64_t data = at + sizeof(struct cv_record);
    return size > CV_RECORD_LARGE ? (data + 4095) & ~UINT64_C(4095) : data;
}

/* Where the record after it begins. */
static inline uint64_t cv_record_end(uint64_t at, uint64_t size)
{
    return (cv_record_data(at, size) + size + 7) & ~UINT64_C(7);
}

_Static_assert(sizeof(struct cv_record) == 64, "a head is 64 bytes");
_Static_assert(sizeof(struct cv_control) <= CV_CONTROL_SIZE, "the control file is two pages");

struct cv_segment {
    int                fd;
    unsigned           number;
    uint64_t           capacity, end; /* bytes */
    uint64_t           last;          /* sequence of its last record */
    char              *map;           /* for the migrating thread; `capacity` bytes, read only */
    atomic_bool        cut;           /* somebody cut the file short, which took data from it */
    const atomic_bool *lost;          /* once it is mapped: its disk gave something else than what was written */
    struct cv_segment *next;
};

struct cv_log {
    struct cv_store   *store;
    struct cv_control *control; /* what counts for this process */
    struct cv_control *page;    /* the same in the file, for whoever comes after a kill; may fail with its disk, */
    const atomic_bool *lost;    /* which this tells: then nothing more is staged in it */
    int                lock; /* the control file; its lock tells others that this process lives */
    char               folder[PATH_MAX];
    pthread_mutex_t    turn; /* over the three lists; the one thread that appends owns `newest` itself */
    struct cv_segment *oldest, *newest, *spare;
    unsigned           segments;
    uint64_t           limit; /* most bytes in segments */
    uint64_t           bytes;
    bool               late;      /* checksums of large data are made by cv_log_sum */
    bool               recounted; /* what the store holds, for this log */
};

/* Changes one of the control's words, `field`, here and in the file. */
static inline void cv_control_set(struct cv_log *log, _Atomic uint64_t *field, uint64_t value)
{
    atomic_store(field, value);
    atomic_store((_Atomic uint64_t *)((char *)log->page + ((char *)field - (char *)log->control)), value);
}

/* Where a record's data lie. */
struct cv_place {
    struct cv_segment *segment;
    uint64_t           sequence;
    uint64_t           head, at; /* offsets of head and data in the segment */
};

/* Whether the record still needs cv_log_sum. */
static inline bool cv_place_unsummed(const struct cv_log *log, uint64_t size)
{
    return log->late && size > CV_RECORD_LARGE;
}

struct cv_log *cv_log_create(struct cv_store *store, const char *path, uint64_t device, uint64_t inode,
                             uint64_t limit);
/* Appends a record of at most CV_RECORD_DATA bytes. Returns 0; or -1 with errno: EAGAIN where the log is full
   until records have been migrated, ENOSPC and others where the node-local storage refuses. */
int  cv_log_append(struct cv_log *log, enum cv_record_kind kind, uint64_t address, const void *data,
                   uint64_t size, struct cv_place *place);
/* Makes the checksum of a record of `size` bytes of data, whose segment is mapped. */
void cv_log_sum(const struct cv_place *place, uint64_t size);
/* Tells the log that the base file holds all records up to `sequence`. */
void cv_log_done(struct cv_log *log, uint64_t sequence);
/* Removes the log's files, which is quick; their pages go with cv_log_free. */
void cv_log_remove(struct cv_log *log);
/* Lets go of the log. Its files stay, but for cv_log_remove. */
void cv_log_free(struct cv_log *log);

/* A thread is about to free a log, and has; nobody does while a process forks. */
enum cv_fork { CV_FORK_BEGINS, CV_FORK_PARENT, CV_FORK_CHILD };
void cv_log_leaves(void);
void cv_log_left(void);
void cv_logs_fork(enum cv_fork when);
/* Bytes of a segment as memory; or NULL with errno, EIO where the file was cut short. To be asked again once they were read:
   then they were whole. */
const char *cv_segment_map(struct cv_segment *segment);

#endif
