/* Making room in the store: whole copies go, and only those that nobody uses. And cleaning up what went. */
#include "config.h"
#include "copy.h"
#include "rates.h"
#include "stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define RETRY UINT64_C(200000000) /* ns between tries that found nothing to remove */

struct victim {
    char     name[24];
    uint64_t rank; /* by the policy: the lowest goes first */
};

static int by_rank(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;

    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static uint64_t rank_of(const struct cv_copy_head *head)
{
    switch (cv_config.policy) {
    case CV_LFU:
        return head->uses;
    case CV_FIFO:
        return head->created;
    default:
        return head->used;
    }
}

static bool is_name(const char *name)
{
    return strlen(name) == 16 && strspn(name, "0123456789abcdef") == 16;
}

/* Opens the map of a copy and reads its head: zeros where it has none. Returns the descriptor, or -1. */
static int open_head(const char *folder, const char *name, struct cv_copy_head *head)
{
    char inner[PATH_MAX], path[PATH_MAX];
    int  map = cv_join(inner, folder, name) && cv_join(path, inner, "map")
                   ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;

    if (map < 0 || cv_read_all(map, head, sizeof *head, 0) != (ssize_t)sizeof *head)
        memset(head, 0, sizeof *head);
    head->file.path[sizeof head->file.path - 1] = '\0';
    return map;
}

static size_t candidates(const char *folder, struct victim **list)
{
    size_t count = 0, room = 0;
    DIR   *entries = opendir(folder);

    *list = NULL;
    if (!entries)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct cv_copy_head head;
        if (!is_name(entry->d_name))
            continue;
        if (count == room) {
            room                = room ? 2 * room : 64;
            struct victim *more = realloc(*list, room * sizeof *more);
            if (!more)
                break;
            *list = more;
        }
        struct victim *v = &(*list)[count++];
        memcpy(v->name, entry->d_name, 17);
        int map = open_head(folder, entry->d_name, &head);
        if (map >= 0)
            close(map);
        v->rank = rank_of(&head);
    }
    closedir(entries);
    if (count)
        qsort(*list, count, sizeof **list, by_rank);
    return count;
}

/* Takes a copy away, after which a kill leaves nothing half done, and removes its files. Returns the bytes that it took. */
static uint64_t remove_copy(const struct cv_store *store, const char *name, int map)
{
    char        gone[PATH_MAX], data[PATH_MAX];
    struct stat there;

    if (!cv_copy_take_away(store, name, map, gone))
        return 0;
    uint64_t bytes = cv_join(data, gone, "data") && !stat(data, &there) ? (uint64_t)there.st_blocks * 512 : 0;
    cv_remove_folder(gone);
    return bytes;
}

/* The same where nobody uses the copy. */
static uint64_t remove_unused(const struct cv_store *store, const char *folder, const char *name)
{
    struct cv_copy_head head;
    uint64_t            bytes = 0;
    int                 map   = open_head(folder, name, &head);

    if (map < 0 || !flock(map, LOCK_EX | LOCK_NB)) {
        bytes = remove_copy(store, name, map);
        CV_COUNT(evicted_files, 1);
        CV_COUNT(evicted_bytes, bytes);
    }
    if (map >= 0)
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
    cv_copy_sweep(store);
    cv_store_recount(store); /* killed processes may have left the count too high */
    size_t count = candidates(folder, &list);
    for (size_t i = 0; i < count && !cv_store_has_room(store, bytes); i++)
        cv_store_give(store, remove_unused(store, folder, list[i].name));
    free(list);
    bool room = cv_store_has_room(store, bytes);
    if (!room)
        atomic_store(&not_before, cv_ticks() + RETRY);
    return room;
}

/* ---- Cleaning up. ---- */

/* Whether the copy's file is gone or another one. */
static bool is_stale(const struct cv_copy_head *head)
{
    struct stat now;

    if (head->magic != CV_COPY_MAGIC || strcmp(head->file.boot, cv_boot()))
        return true;
    return stat(head->file.path, &now) ? errno == ENOENT : !cv_copy_fits(&head->file, &now);
}

/* Whether the process that is making the copy in a folder of this name was killed. */
static bool is_left(const char *name)
{
    long          pid;
    unsigned long start;

    return sscanf(name, ".new-%ld-%lu-", &pid, &start) == 2 && cv_process_start((pid_t)pid) != start;
}

void cv_copy_sweep(struct cv_store *store)
{
    char folder[PATH_MAX], inner[PATH_MAX];
    DIR *entries = cv_join(folder, store->folder, "read") ? opendir(folder) : NULL;

    if (!entries)
        return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct cv_copy_head head;
        const char         *name = entry->d_name;
        if (!strncmp(name, ".gone-", 6) || is_left(name)) {
            if (cv_join(inner, folder, name))
                cv_remove_folder(inner);
        } else if (is_name(name)) {
            int map = open_head(folder, name, &head);
            if (is_stale(&head)) {
                CV_COUNT(dropped_copies, 1);
                cv_store_give(store, remove_copy(store, name, map));
            }
            if (map >= 0)
                close(map);
        }
    }
    closedir(entries);
}
