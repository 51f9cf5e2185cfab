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
        return said(path);
    bool good = true;
    for (int64_t at = 0; good && at < size;) {
        size_t count = size - at < PIECE ? (size_t)(size - at) : PIECE;
        ssize_t done = pwrite(descriptor, piece, count, (off_t)at);
        good = done > 0;
        at += good ? done : 0;
    }
    good = good && fsync(descriptor) == 0;
    if (good)
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    else
        said(path);
    close(descriptor);
    return good;
}

bool prepare(const struct recipe *recipe, char *const *roots)
{
    char *piece = malloc(PIECE);
    if (piece == NULL)
        return false;
    for (int i = 0; i < PIECE; i++)
        piece[i] = (char)(i * 2654435761u >> 13);
    bool good = true;
    for (uint32_t i = 0; good && i < recipe->file_count; i++) {
        char *path = full_path(recipe, roots, i);
        good = path != NULL && make_folders(path, recipe->files[i].flags == 'd');
        if (good && recipe->files[i].size > 0)
            good = fill(path, recipe->files[i].size, piece);
        free(path);
    }
    free(piece);
    return good;
}
