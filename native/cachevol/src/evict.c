/* Making room in the store: whole copies go, and only those that nobody uses. */
#include "config.h"
#include "copy.h"
#include "rates.h"
#include "stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define RETRY UINT64_C(200000000) /* ns between tries that found nothing to remove */

struct victim {
    char     name[32];
    bool     stale;
    uint64_t rank; /* by the policy: the lowest goes first */
};

static int by_rank(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;

    if (x->stale != y->stale)
        return x->stale ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* A copy is stale once its file is gone or another one. */
static bool is_stale(const struct cv_copy_head *head)
{
    struct stat now;

    if (head->magic != CV_COPY_MAGIC || strcmp(head->boot, cv_boot()))
        return true;
    if (stat(head->path, &now))
        return errno == ENOENT;
    return head->size != (uint64_t)now.st_size || head->mtime != now.st_mtim.tv_sec ||
           head->mtime_ns != now.st_mtim.tv_nsec || head->inode != now.st_ino ||
           head->ctime != now.st_ctim.tv_sec || head->ctime_ns != now.st_ctim.tv_nsec;
}

static uint64_t rank_of(const struct cv_copy_head *head)
{
    switch (cv_config.policy) {
    case CV_LFU:
        return atomic_load(&head->uses);
    case CV_FIFO:
        return head->created;
    default:
        return atomic_load(&head->used);
    }
}

static size_t candidates(const char *folder, struct victim **list)
{
    size_t count = 0, room = 0;
    DIR   *entries = opendir(folder);

    *list = NULL;
    if (!entries)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        char                inner[PATH_MAX], path[PATH_MAX];
        struct cv_copy_head head;
        if (strlen(entry->d_name) != 16 || !cv_join(inner, folder, entry->d_name) || !cv_join(path, inner, "map"))
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            continue;
        bool whole = cv_read_all(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
        close(fd);
        if (!whole)
            memset(&head, 0, sizeof head);
        head.path[sizeof head.path - 1] = '\0';
        if (count == room) {
            room                = room ? 2 * room : 64;
            struct victim *more = realloc(*list, room * sizeof *more);
            if (!more)
                break;
            *list = more;
        }
        struct victim *v = &(*list)[count++];
        memcpy(v->name, entry->d_name, 17);
        v->stale = is_stale(&head), v->rank = rank_of(&head);
    }
    closedir(entries);
    if (count)
        qsort(*list, count, sizeof **list, by_rank);
    return count;
}

/* Removes one copy where nobody uses it; returns the bytes that it took. */
static uint64_t remove_copy(const char *folder, const char *name)
{
    char        inner[PATH_MAX], path[PATH_MAX];
    struct stat there;
    uint64_t    bytes = 0;

    if (!cv_join(inner, folder, name) || !cv_join(path, inner, "map"))
        return 0;
    int map = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (map < 0)
        return 0;
    if (!flock(map, LOCK_EX | LOCK_NB)) {
        char data[PATH_MAX];
        if (cv_join(data, inner, "data") && !stat(data, &there))
            bytes = (uint64_t)there.st_blocks * 512;
        cv_remove_folder(inner);
        CV_COUNT(evicted_files, 1);
        CV_COUNT(evicted_bytes, bytes);
    }
    close(map);
    return bytes;
}

bool cv_copy_evict(struct cv_store *store, uint64_t bytes)
{
    static _Atomic uint64_t not_before;
    char                    folder[PATH_MAX];
    struct victim          *list;

    if (cv_ticks() < atomic_load(&not_before) || !cv_join(folder, store->folder, "read"))
        return false;
    cv_store_recount(store); /* killed processes may have left the count too high */
    size_t count = candidates(folder, &list);
    for (size_t i = 0; i < count && atomic_load(store->used) + bytes > store->limit; i++)
        cv_store_give(store, remove_copy(folder, list[i].name));
    free(list);
    bool room = atomic_load(store->used) + bytes <= store->limit;
    if (!room)
        atomic_store(&not_before, cv_ticks() + RETRY);
    return room;
}
