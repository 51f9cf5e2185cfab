/* The node-local folder: <storage path>/cachevol-<uid>[/<host>] with logs/, read/ and the file `budget`.
   Its owner is the user and nobody else may enter it. */
#ifndef CACHEVOL_STORE_H
#define CACHEVOL_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cv_store {
    char     folder[PATH_MAX];
    uint64_t limit;  /* bytes that logs and copies may take together */
    int      budget; /* file descriptor of `budget`, which holds the bytes that they take, for all processes of the node */
};

/* Opens the folder, making it where needed. `shared` tells that several nodes see `path`. Returns 0, or -1
   with a sentence in `why`. */
int  cv_store_open(struct cv_store *store, const char *path, bool shared, uint64_t limit, char *why, size_t room);
void cv_store_close(struct cv_store *store);

/* Takes `bytes` of the budget; false where that would go over the limit. */
bool cv_store_take(struct cv_store *store, uint64_t bytes);
void cv_store_give(struct cv_store *store, uint64_t bytes);
bool cv_store_has_room(struct cv_store *store, uint64_t bytes);

/* Counts anew what the folder really takes: processes that were killed gave nothing back. */
void cv_store_recount(struct cv_store *store);

/* Name of this machine, the boot it is in, the time (ns since 1970) and the start of a process (clock ticks
   after the boot, 0 for one that is gone). */
const char *cv_host(void);
const char *cv_boot(void);
bool        cv_boot_is_known(void);
uint64_t    cv_now(void);
uint64_t    cv_ticks(void); /* ns of the monotonic clock */
uint64_t    cv_process_start(pid_t pid);

/* Joins folder and name; false where the path is longer than PATH_MAX. */
bool cv_join(char path[PATH_MAX], const char *folder, const char *name);

/* Opens a folder that is this user's own and nobody else's to write to, so that what lies in it is this user's.
   Returns a descriptor, or -1 with errno: EPERM where somebody else could have put things there. */
int cv_open_own(const char *folder);

/* Finds what cv_store_open made for this user on `path`; makes nothing. Returns 0, or -1 with errno as above. */
int cv_store_find(const char *path, char folder[PATH_MAX]);

/* Removes a folder and the plain files in it; a link to a folder is none. */
void cv_remove_folder(const char *folder);
void cv_empty_folder(int folder);

int cv_write_all(int fd, const void *data, size_t size, off_t at);   /* 0, or -1 with errno */
ssize_t cv_read_all(int fd, void *data, size_t size, off_t at);      /* bytes (fewer at the end), or -1 with errno */

#endif
