/*
 * A recipe: which streams (a thread of a process of the traced program) do what to which files, in
 * which order. Text, one record a line; times in nanoseconds from the start, sizes and offsets in bytes.
 *
 *   tiercel-replay 2
 *   files N streams M operations K waits L
 *   f ROOT SIZE FLAGS PATH         file 0, 1, ...: number of its root, bytes before the program, FLAGS (below);
 *                                  PATH relative to the root, %XX for other bytes
 *   s OPERATIONS WAITS             stream 0, 1, ...: how many operations and waits before the first follow
 *   w STREAM COUNT                 wait until that stream has done so many operations
 *   o KIND FILE OFFSET SIZE GAP WAITS
 *
 * FLAGS of a file: '-' none, or letters: 'b' buffered, 'd' a folder, 'e' it was there before the program, 'n' the
 * program makes the folder that it lies in. GAP: what the stream did between its last operation (or what it waited
 * for, if that was later) and this one, in nanoseconds. OFFSET and SIZE of the kinds that move no bytes: OPEN, SIZE
 * is how (enum how); RENAME and LINK, OFFSET is the number of the other name's file plus one, 0 where a trace
 * does not tell it; TRUNCATE, OFFSET is the new length; ALLOCATE, the bytes that are allocated; locks, the bytes
 * that are locked (SIZE 0: all that follow); STAT, ATTRIBUTES and TRUNCATE, SIZE 1: of the open file, not by name.
 */
#ifndef REPLAY_RECIPE_H
#define REPLAY_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

enum kind {
    KIND_OPEN = 'O', KIND_CLOSE = 'C', KIND_READ = 'R', KIND_WRITE = 'W', KIND_FSYNC = 'S',
    KIND_FDATASYNC = 'D', KIND_FLUSH = 'L', KIND_STAT = 'T', KIND_UNLINK = 'U', KIND_RENAME = 'N',
    KIND_MKDIR = 'M', KIND_RMDIR = 'X', KIND_LIST = 'G', KIND_ATTRIBUTES = 'A', KIND_TRUNCATE = 'K',
    KIND_LINK = 'Y', KIND_LOCK = 'E', KIND_LOCK_SHARED = 'H', KIND_UNLOCK = 'V',
    KIND_ALLOCATE = 'P', KIND_ALLOCATE_KEEP = 'Q', /* the second leaves the file's length as it is */
};

/* How a file is opened; 0: the trace does not tell, so for reading and writing. */
enum how { HOW_READ_ONLY = 1, HOW_TRUNCATE = 2, HOW_SYNC = 4, HOW_DIRECT = 8, HOW_NO_CREATE = 16 };

struct wait {
    uint32_t stream;
    uint32_t count;
};

struct operation {
    char kind;
    uint32_t file;
    int64_t offset;
    int64_t size;
    int64_t gap;
    uint32_t wait_first, wait_count;
};

struct file {
    uint32_t root;
    int64_t size; /* before the program */
    bool buffered, folder, existed, made_folder;
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
};

/* Reads `path`; false after a message on standard error that names the line. */
bool recipe_read(struct recipe *recipe, const char *path);

#endif
