/* Where copies lie. Whatever is done to a copy's folder is one rename:

     .new-<pid>-<start>-<n>  ->  <name>     made, with head and empty data, and locked by its maker
     <name>  ->  .gone-<pid>-<start>-<n>    taken away; its files go a moment later (cv_copy_sweep)          */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool cv_copy_fits(const struct cv_identity *file, const struct stat *now)
{
    return file->size == (uint64_t)now->st_size && file->device == now->st_dev && file->inode == now->st_ino &&
           file->mtime == now->st_mtim.tv_sec && file->mtime_ns == now->st_mtim.tv_nsec &&
           file->ctime == now->st_ctim.tv_sec && file->ctime_ns == now->st_ctim.tv_nsec;
}

bool cv_copy_place(const struct cv_store *store, const char *name, const char *what, char path[PATH_MAX])
{
    static atomic_uint serial;
    char               inner[128];

    if (what)
        snprintf(inner, sizeof inner, "read/.%s-%ld-%lu-%u", what, (long)getpid(),
                 (unsigned long)cv_process_start(getpid()), atomic_fetch_add(&serial, 1));
    else
        snprintf(inner, sizeof inner, "read/%s", name);
    return cv_join(path, store->folder, inner);
}

bool cv_copy_has_map(const char *folder, int map)
{
    char        path[PATH_MAX];
    struct stat there, ours;

    if (!cv_join(path, folder, "map") || fstat(map, &ours))
        return false;
    return stat(path, &there) ? errno == ENOENT : there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

/* Whether the copy in this folder is the one that is meant: see cv_copy_take_away. */
static bool is_meant(const char *folder, int map)
{
    char path[PATH_MAX];

    if (map >= 0)
        return cv_copy_has_map(folder, map);
    if (map == CV_ANY_COPY || !cv_join(path, folder, "map"))
        return true;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (opened >= 0)
        close(opened);
    return opened < 0;
}

bool cv_copy_take_away(const struct cv_store *store, const char *name, int map, char gone[PATH_MAX])
{
    char from[PATH_MAX];

    if (!cv_copy_place(store, name, NULL, from) || !cv_copy_place(store, name, "gone", gone) ||
        !is_meant(from, map) || rename(from, gone))
        return false;
    if (is_meant(gone, map))
        return true;
    /* Another thread or process was faster, and made a new one: back with it, unless there is a third. */
    if (rename(gone, from))
        cv_remove_folder(gone);
    return false;
}
