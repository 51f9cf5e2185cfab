#include "prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream.h"

#define PIECE (1 << 20)

static bool said(const char *path)
{
    fprintf(stderr, "tiercel-replay: %s: %s\n", path, strerror(errno));
    return false;
}

/* Makes the folders above the last part of `path` (or all of it, for a folder); it is changed and restored. */
static bool make_folders(char *path, bool whole)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!good)
            return said(path);
    }
    return !whole || mkdir(path, 0700) == 0 || errno == EEXIST || said(path);
}

static bool fill(const char *path, int64_t size, const char *piece)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return (errno == EISDIR && size == 0) || said(path); /* looked at under another name of a folder */
    bool good = true;
    for (int64_t at = 0; good && at < size;) {
        size_t count = size - at < PIECE ? (size_t)(size - at) : PIECE;
        ssize_t done = pwrite(descriptor, piece, count, (off_t)at);
        good = done > 0;
        at += good ? done : 0;
    }
    if (!good)
        said(path);
    close(descriptor);
    return good;
}

/* Writes all of a root's file system out: one sync for each file would take minutes where there are many. */
static bool write_out(const char *root)
{
    int descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = descriptor >= 0 && syncfs(descriptor) == 0;
    if (!good)
        said(root);
    if (descriptor >= 0)
        close(descriptor);
    return good;
}

/* Pages that are written out leave the cache; the name stays known, as it does after any look at it. */
static bool evict(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return said(path);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
    return true;
}

bool prepare(const struct recipe *recipe, char *const *roots)
{
    char *piece = malloc(PIECE);
    if (piece == NULL)
        return false;
    /* Without a pattern: file systems that compress gain nothing. */
    uint64_t value = 0x9E3779B97F4A7C15u;
    for (int i = 0; i < PIECE; i++) {
        value ^= value << 13, value ^= value >> 7, value ^= value << 17;
        piece[i] = (char)value;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < recipe->file_count; i++) {
        const struct file *f = &recipe->files[i];
        if (f->made_folder && !f->existed)
            continue; /* the program makes the way to it */
        char *path = full_path(recipe, roots, i);
        good = path != NULL && make_folders(path, f->folder && f->existed);
        if (good && f->existed && !f->folder)
            good = fill(path, f->size, piece);
        free(path);
    }
    free(piece);
    for (uint32_t root = 0; good && root < recipe->root_count; root++)
        good = write_out(roots[root]);
    for (uint32_t i = 0; good && i < recipe->file_count; i++) {
        if (recipe->files[i].size == 0 || recipe->files[i].folder)
            continue;
        char *path = full_path(recipe, roots, i);
        good = path != NULL && evict(path);
        free(path);
    }
    return good;
}
