/* The node-local copy of a base file that is only read: a sparse file of the same length, and a map with one
   bit for each block that it holds. Processes of a node share it; it outlives them.

   <store>/read/<key>/data, <store>/read/<key>/map. The key is a checksum over the file's path, device, inode,
   size, times of change and first block: a file that changed has another key, so that the old copy is never
   used for it. A copy in use holds a shared lock on its map; only one that nobody uses is ever removed. */
#ifndef CACHEVOL_COPY_H
#define CACHEVOL_COPY_H

#include "store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define CV_BLOCK      4096 /* bytes */
#define CV_COPY_MAGIC UINT64_C(0x31594f43564c5643)
#define CV_COPY_HEAD  8192 /* bytes of the map file before the bits */

struct cv_copy_head {
    uint64_t         magic;
    uint64_t         size;       /* of the base file, bytes */
    uint64_t         device, inode;
    int64_t          mtime, mtime_ns, ctime, ctime_ns;
    uint64_t         first_sum;  /* of the first block */
    uint64_t         created;    /* ns since 1970 */
    _Atomic uint64_t used;       /* ns since 1970: last opened */
    _Atomic uint64_t uses;       /* times opened */
    _Atomic uint64_t blocks;     /* that it holds */
    char             boot[40];
    char             path[PATH_MAX];
};

_Static_assert(sizeof(struct cv_copy_head) <= CV_COPY_HEAD, "the head fits before the bits");

struct cv_copy {
    struct cv_store     *store;
    int                  data, map; /* file descriptors */
    struct cv_copy_head *head;
    _Atomic uint64_t    *bits;
    size_t               mapped; /* bytes */
    uint64_t             size;
    atomic_uint          users;  /* the opened file, and fills on their way */
    atomic_bool          stale;  /* the base file changed: nothing more is read from here or put here */
    _Atomic uint64_t     full;   /* ticks until which nothing is put: the node-local storage took no more */
    int                  base;   /* own descriptor of the base file, for prefetching */
    uint64_t             ahead;  /* next block to prefetch */
    struct cv_copy      *next;   /* in the list of copies that want prefetching */
};

/* Opens or makes the copy of the file `path` that is open as `base` with status `now`; NULL where there can be none. */
struct cv_copy *cv_copy_open(struct cv_store *store, const char *path, int base, const struct stat *now);
void            cv_copy_hold(struct cv_copy *copy);
void            cv_copy_release(struct cv_copy *copy);

/* Length in bytes of the run from `address` to at most `end` whose blocks are all there (`*there`) or all missing. */
uint64_t cv_copy_run(const struct cv_copy *copy, uint64_t address, uint64_t end, bool *there);

/* Whether the file is still the one that the copy was made of. */
bool cv_copy_fits(const struct cv_copy *copy, const struct stat *now);

/* Puts whole blocks (or the end of the file) into the copy. Takes the budget for them, removing other copies
   where needed. Returns bytes that are new in it, or -1 with errno. */
int64_t cv_copy_put(struct cv_copy *copy, uint64_t address, const void *data, uint64_t size);

/* Removes copies that nobody uses, stale ones first, then by the replacement policy, until `bytes` are free.
   Returns whether they are. */
bool cv_copy_evict(struct cv_store *store, uint64_t bytes);

#endif
