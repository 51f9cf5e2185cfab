/* The node-local copy of a base file that is only read. Processes of a node share it; it outlives them.

   <store>/read/<name>/map: a head that tells of which file in which state it is the copy, and a word for each block:
   0 while it is missing, else a checksum over its bytes, its place and the file's state.
   <store>/read/<name>/data: a sparse file of the base file's length.

   The name is a checksum of the path: a path has one copy. Nothing is believed because it lies there: a block is
   handed out once its bytes have proved to be what was put there, in this process and since `data` last changed
   (copyblocks.c). What does not prove itself is taken away and made again.

   A copy appears whole, by renaming its folder, and goes in the same way; so it does not matter when its maker or
   remover is killed (copyplace.c). Who has it open goes on with its files, wherever the folder went. Each holds a shared
   lock on the map; only copies without one make room for others. */
#ifndef CACHEVOL_COPY_H
#define CACHEVOL_COPY_H

#include "store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define CV_BLOCK      4096 /* bytes */
#define CV_COPY_MAGIC UINT64_C(0x32594f43564c5643)
#define CV_COPY_HEAD  8192 /* bytes of the map before the words */

/* What a base file is, and what tells its states apart. */
struct cv_identity {
    uint64_t size; /* bytes */
    uint64_t device, inode;
    int64_t  mtime, mtime_ns, ctime, ctime_ns;
    uint64_t first_sum; /* of the first block */
    char     boot[40];
    char     path[PATH_MAX];
};

struct cv_copy_head {
    uint64_t           magic;
    struct cv_identity file;
    uint64_t           data_device, data_inode; /* of `data` */
    uint64_t           created;                 /* ns since 1970 */
    uint64_t           sum;                     /* of all before */
    /* For the replacement policy alone; of two processes that open the copy at the same time one may not count. */
    uint64_t used; /* ns since 1970: last opened */
    uint64_t uses; /* times opened */
};

_Static_assert(sizeof(struct cv_copy_head) <= CV_COPY_HEAD, "the head fits before the words");

struct cv_proved; /* copyblocks.c: which blocks have proved themselves */

struct cv_copy {
    struct cv_store    *store;
    char                name[24];
    int                 data, map; /* file descriptors */
    struct cv_copy_head head;      /* as it was when the copy was opened */
    uint64_t            size;      /* bytes */
    uint64_t            state;     /* of the base file, equal on all nodes: goes into the blocks' sums */
    struct cv_proved   *proved;    /* belongs to the thread that reads */
    atomic_uint         users;     /* the opened file, and fills on their way */
    atomic_bool         stale;     /* given up: nothing more is put here */
    _Atomic uint64_t    full;      /* ticks until which nothing is put: the node-local storage took no more */
    int                 base;      /* own descriptor of the base file, for prefetching */
    uint64_t            ahead;     /* next block to prefetch */
    struct cv_copy     *next;      /* in the list of copies that want prefetching */
};

/* Opens or makes the copy of the file `path` that is open as `base` with status `now`; NULL where there can be none. A
   copy of another state of the file is taken away. */
struct cv_copy *cv_copy_open(struct cv_store *store, const char *path, int base, const struct stat *now);

/* Takes the copy away for all that do not have it open. */
void cv_copy_condemn(struct cv_copy *copy);
/* Takes away the copy of a path. Whoever has it open goes on with it. */
void cv_copy_drop(struct cv_store *store, const char *path);
/* Takes away the copy of a path where its file changed or is gone. */
void cv_copy_review(struct cv_store *store, const char *path);

/* ---- copyplace.c ---- */

/* Whether the file is still the one that the copy was made of. */
bool cv_copy_fits(const struct cv_identity *file, const struct stat *now);

/* A path in the folder of copies for `name`, or with `what` for a new name of that kind. */
bool cv_copy_place(const struct cv_store *store, const char *name, const char *what, char path[PATH_MAX]);

/* Whether the copy in this folder is the one whose map is open as `map`, or has none: a cleaner took it. */
bool cv_copy_has_map(const char *folder, int map);

#define CV_NO_MAP   (-1) /* what open gives */
#define CV_ANY_COPY (-2)

/* Takes the copy of that name away by one rename, after which its files are in the folder `gone`: if it is the one whose
   map is open as `map`; with CV_NO_MAP, if it has none that opens, since one that does was made meanwhile; with
   CV_ANY_COPY, whichever it is. */
bool cv_copy_take_away(const struct cv_store *store, const char *name, int map, char gone[PATH_MAX]);

/* ---- copyblocks.c ---- */

void cv_copy_hold(struct cv_copy *copy);
void cv_copy_release(struct cv_copy *copy);
/* Closes its files, and with them our part of the lock. */
void cv_copy_close(struct cv_copy *copy);

/* Reads from `address` as far as the blocks are there and prove right, at most `size` bytes. Returns bytes; 0 where the
   first block is missing, -1 where the copy is damaged. `look` tells to ask whether `data` changed since the last
   call. One thread at a time. */
ssize_t cv_copy_read(struct cv_copy *copy, void *data, uint64_t size, uint64_t address, bool look);

/* Length in bytes of a run from `address` to at most `end` whose blocks are all there (`*there`) or all missing. */
uint64_t cv_copy_run(const struct cv_copy *copy, uint64_t address, uint64_t end, bool *there);

/* The words of `count` blocks from the map; 0 for those that are missing. */
void cv_copy_words(const struct cv_copy *copy, uint64_t first, uint64_t count, uint64_t *words);

/* The word of a block with these bytes: never 0. */
uint64_t cv_copy_word(const struct cv_copy *copy, uint64_t block, const void *bytes, uint64_t size);

/* Puts whole blocks (or the end of the file) into the copy. Takes the budget for them, removing other copies
   where needed. Returns bytes that are new in it, or -1 with errno. */
int64_t cv_copy_put(struct cv_copy *copy, uint64_t address, const void *data, uint64_t size);

struct cv_proved *cv_proved_make(uint64_t size);

/* ---- evict.c ---- */

/* Removes copies that nobody uses, by the replacement policy, until `bytes` are free. Returns whether they are. */
bool cv_copy_evict(struct cv_store *store, uint64_t bytes);

/* Removes what was taken away, what a killed process was making, and the copies of files that changed or are gone. */
void cv_copy_sweep(struct cv_store *store);

#endif
