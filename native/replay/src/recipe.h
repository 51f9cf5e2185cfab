/*
 * A recipe: which streams (a thread of a process of the traced program) do what to which files, in
 * which order. Text, one record a line; times in nanoseconds from the start, sizes and offsets in bytes.
 *
 *   tiercel-replay 1
 *   files N streams M operations K waits L
 *   f ROOT SIZE FLAGS PATH         file 0, 1, ...: number of its root, bytes before the program, '-' plain,
 *                                  'd' folder, 'b' buffered; PATH relative to the root, %XX for other bytes
 *   s OPERATIONS WAITS             stream 0, 1, ...: how many operations and waits before the first follow
 *   w STREAM COUNT                 wait until that stream has done so many operations
 *   o KIND FILE OFFSET SIZE TIME WAITS
 */
#ifndef REPLAY_RECIPE_H
#define REPLAY_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

enum kind {
    KIND_OPEN = 'O', KIND_CLOSE = 'C', KIND_READ = 'R', KIND_WRITE = 'W', KIND_FSYNC = 'S',
    KIND_FDATASYNC = 'D', KIND_FLUSH = 'L', KIND_STAT = 'T', KIND_UNLINK = 'U', KIND_RENAME = 'N',
    KIND_MKDIR = 'M',
};

struct wait {
    uint32_t stream;
    uint32_t count;
};

struct operation {
    char kind;
    uint32_t file;
    int64_t offset;
    int64_t size;
    int64_t time;
    uint32_t wait_first, wait_count;
};

struct file {
    uint32_t root;
    int64_t size; /* before the program */
    char flags;
    char *path;
};

struct stream {
    uint32_t first, count; /* operations */
    uint32_t wait_first, wait_count;
};

struct recipe {
    struct file *files;
    struct stream *streams;
    struct operation *operations;
    struct wait *waits;
    uint32_t file_count, stream_count, operation_count, wait_count;
    uint32_t root_count; /* highest root named, plus one */
    int64_t largest;     /* transfer */
};

/* Reads `path`; false after a message on standard error that names the line. */
bool recipe_read(struct recipe *recipe, const char *path);

#endif
