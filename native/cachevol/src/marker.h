/* The marker beside a base file: `.<name>.cachevol` says that a log holds data which the file lacks. */
#ifndef CACHEVOL_MARKER_H
#define CACHEVOL_MARKER_H

#include <limits.h>
#include <stdbool.h>

struct cv_marker {
    char host[64];
    char id[128];
    char folder[PATH_MAX]; /* of the log */
    long pid;
};

/* `path` is the base file's real path. Each returns 0, or -1 with errno; read: ENOENT without a marker. What a marker
   says is the word of whoever may write in the file's folder, no more: which log it names is for the reader to prove.
   In a sticky folder, such as /tmp, whose others cannot replace the file, theirs is none. */
int cv_marker_write(const char *path, const struct cv_marker *marker);
int cv_marker_read(const char *path, struct cv_marker *marker);
/* Removes the marker of this log, no other. */
int cv_marker_remove(const char *path, const char *id);
/* The same; whether it is not there any more. */
bool cv_marker_is_gone(const char *path, const char *id);

#endif
