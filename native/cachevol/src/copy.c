/* Making, finding and taking away copies. */
#include "copy.h"
#include "checksum.h"
#include "fill.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TRIES 8 /* to find or make a copy while others make it and take it away */

static uint64_t words_of(uint64_t size)
{
    return (size + CV_BLOCK - 1) / CV_BLOCK;
}

static int identify(struct cv_identity *file, const char *path, int base, const struct stat *now)
{
    char    first[CV_BLOCK];
    ssize_t got = cv_read_all(base, first, sizeof first, 0);

    if (got < 0 || strlen(path) >= sizeof file->path)
        return -1;
    memset(file, 0, sizeof *file);
    file->size = (uint64_t)now->st_size, file->device = now->st_dev, file->inode = now->st_ino;
    file->mtime = now->st_mtim.tv_sec, file->mtime_ns = now->st_mtim.tv_nsec;
    file->ctime = now->st_ctim.tv_sec, file->ctime_ns = now->st_ctim.tv_nsec;
    file->first_sum = cv_sum(first, (size_t)got);
    snprintf(file->boot, sizeof file->boot, "%s", cv_boot());
    strcpy(file->path, path);
    return 0;
}

static uint64_t sum_of(const struct cv_copy_head *head)
{
    return cv_sum(head, offsetof(struct cv_copy_head, sum));
}

/* What the sums of blocks begin with. Not device and path: a file system may be mounted elsewhere on another node. */
static uint64_t state_of(const struct cv_identity *file)
{
    const uint64_t state[] = {file->size, (uint64_t)file->mtime, (uint64_t)file->mtime_ns, file->first_sum};

    return cv_sum(state, sizeof state);
}

static void name_of(const char *path, char name[24])
{
    snprintf(name, 24, "%016lx", (unsigned long)cv_sum(path, strlen(path)));
}

static void take_away(struct cv_store *store, const char *name, int map)
{
    char gone[PATH_MAX];

    if (cv_copy_take_away(store, name, map, gone)) {
        CV_COUNT(dropped_copies, 1);
        cv_fill_sweep(store);
    }
}

/* Whether the folder of that name is the one with this map in it, or has none: a cleaner took it. */
static bool is_ours(const struct cv_copy *copy)
{
    char folder[PATH_MAX];

    return cv_copy_place(copy->store, copy->name, NULL, folder) && cv_copy_has_map(folder, copy->map);
}

/* ---- Opening. ---- */

static bool open_files(struct cv_copy *copy, const char *path, int more)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (folder < 0)
        return false;
    copy->map  = openat(folder, "map", O_RDWR | O_CLOEXEC | O_NOFOLLOW | more, 0600);
    copy->data = copy->map < 0 ? -1 : openat(folder, "data", O_RDWR | O_CLOEXEC | O_NOFOLLOW | more, 0600);
    close(folder);
    return copy->data >= 0;
}

/* Whether what lies there is a copy of the file in this state, as far as its head and the files' shapes tell. */
static bool is_whole(struct cv_copy *copy, const struct cv_identity *wanted)
{
    struct cv_copy_head *head = &copy->head;
    struct stat          data, map;

    return cv_read_all(copy->map, head, sizeof *head, 0) == (ssize_t)sizeof *head && head->magic == CV_COPY_MAGIC &&
           head->sum == sum_of(head) && !memcmp(&head->file, wanted, sizeof *wanted) && !fstat(copy->data, &data) &&
           S_ISREG(data.st_mode) && data.st_dev == head->data_device && data.st_ino == head->data_inode &&
           data.st_size == (off_t)wanted->size && !fstat(copy->map, &map) &&
           map.st_size == (off_t)(CV_COPY_HEAD + words_of(wanted->size) * sizeof(uint64_t));
}

/* Opens the copy that lies there. Where it is none of this file in this state, takes it away. */
static bool find(struct cv_copy *copy, const struct cv_identity *wanted)
{
    char        path[PATH_MAX];
    struct stat there;

    if (!cv_copy_place(copy->store, copy->name, NULL, path) || lstat(path, &there))
        return false;
    bool opened = open_files(copy, path, 0);
    bool ours   = opened && !flock(copy->map, LOCK_SH) && is_ours(copy);
    if (ours && is_whole(copy, wanted))
        return true;
    if (ours || !opened)
        take_away(copy->store, copy->name, copy->map);
    cv_copy_close(copy);
    return false;
}

/* Makes an empty copy. */
static bool make(struct cv_copy *copy, const struct cv_identity *wanted)
{
    char                 fresh[PATH_MAX], path[PATH_MAX];
    struct cv_copy_head *head = &copy->head;
    struct stat          data;
    off_t                length = (off_t)(CV_COPY_HEAD + words_of(wanted->size) * sizeof(uint64_t));

    if (!cv_copy_place(copy->store, copy->name, NULL, path) || !cv_copy_place(copy->store, copy->name, "new", fresh) ||
        mkdir(fresh, 0700))
        return false;
    memset(head, 0, sizeof *head);
    if (open_files(copy, fresh, O_CREAT | O_EXCL) && !flock(copy->map, LOCK_SH) &&
        !ftruncate(copy->data, (off_t)wanted->size) && !fstat(copy->data, &data) && !ftruncate(copy->map, length)) {
        head->magic = CV_COPY_MAGIC, head->file = *wanted, head->created = cv_now();
        head->data_device = data.st_dev, head->data_inode = data.st_ino;
        head->sum = sum_of(head);
        if (!cv_write_all(copy->map, head, sizeof *head, 0) && !rename(fresh, path))
            return true;
    }
    cv_copy_close(copy);
    cv_remove_folder(fresh); /* no room, or another process was faster */
    return false;
}

struct cv_copy *cv_copy_open(struct cv_store *store, const char *path, int base, const struct stat *now)
{
    struct cv_identity wanted;
    bool               there = false;

    if (now->st_size <= 0 || identify(&wanted, path, base, now))
        return NULL;
    struct cv_copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    copy->store = store, copy->size = wanted.size, copy->data = copy->map = copy->base = -1;
    copy->state = state_of(&wanted);
    atomic_init(&copy->users, 1);
    name_of(path, copy->name);
    for (int tries = 0; tries < TRIES && !there; tries++)
        there = find(copy, &wanted) || make(copy, &wanted);
    copy->proved = there ? cv_proved_make(copy->size) : NULL;
    if (!copy->proved) {
        cv_copy_release(copy);
        return NULL;
    }
    uint64_t opened[2] = {cv_now(), copy->head.uses + 1};
    cv_write_all(copy->map, opened, sizeof opened, offsetof(struct cv_copy_head, used));
    CV_COUNT(files_cached, 1);
    return copy;
}

/* ---- Taking away. ---- */

void cv_copy_condemn(struct cv_copy *copy)
{
    atomic_store(&copy->stale, true);
    if (is_ours(copy))
        take_away(copy->store, copy->name, copy->map);
}

void cv_copy_review(struct cv_store *store, const char *path)
{
    char                name[24], folder[PATH_MAX], map[PATH_MAX];
    struct cv_copy_head head;
    struct stat         now;

    name_of(path, name);
    if (!cv_copy_place(store, name, NULL, folder) || !cv_join(map, folder, "map"))
        return;
    int fd = open(map, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    bool read = cv_read_all(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
    if (!read || (stat(path, &now) ? errno == ENOENT : !cv_copy_fits(&head.file, &now)))
        take_away(store, name, fd);
    close(fd);
}

void cv_copy_drop(struct cv_store *store, const char *path)
{
    char name[24];

    name_of(path, name);
    if (store)
        take_away(store, name, CV_ANY_COPY);
}
