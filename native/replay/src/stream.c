#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file as one stream holds it; opens nest, as in a program that opens a file twice. */
struct handle {
    int descriptor; /* -1: closed */
    FILE *buffered;
    int64_t position; /* of the buffered file */
    uint32_t opens;
};

struct worker {
    const struct recipe *recipe;
    char *const *roots;
    struct board *board;
    struct handle *handles;
    char *buffer;
};

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

char *full_path(const struct recipe *recipe, char *const *roots, uint32_t file)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", roots[recipe->files[file].root], recipe->files[file].path) < 0)
        return NULL;
    return path;
}

static bool fail(struct worker *w, const struct operation *o, const char *what)
{
    if (atomic_fetch_add(&w->board->failed, 1) == 0)
        snprintf(w->board->message, sizeof w->board->message, "%s %s: %s", what, w->recipe->files[o->file].path, strerror(errno));
    return false;
}

static void sleep_until(int64_t moment)
{
    struct timespec t = {.tv_sec = moment / 1000000000, .tv_nsec = moment % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

/* False when another stream failed: it will never get there. */
static bool wait_for(const struct worker *w, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        const struct wait *wait = &w->recipe->waits[i];
        for (unsigned tries = 0; atomic_load(&w->board->done[wait->stream]) < wait->count; tries++) {
            if (atomic_load(&w->board->failed))
                return false;
            if (tries < 64) {
                sched_yield();
            } else {
                struct timespec pause = {.tv_nsec = 20000};
                nanosleep(&pause, NULL);
            }
        }
    }
    return true;
}

static bool open_handle(struct worker *w, uint32_t number, const char *path)
{
    struct handle *h = &w->handles[number];
    const struct file *f = &w->recipe->files[number];
    if (h->opens++ > 0)
        return true;
    if (f->flags == 'd')
        h->descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else
        h->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (h->descriptor >= 0 && f->flags == 'b') {
        h->buffered = fdopen(h->descriptor, "r+");
        h->position = 0;
    }
    if (h->descriptor < 0)
        h->opens = 0;
    return h->descriptor >= 0;
}

static bool close_handle(struct handle *h)
{
    bool good = true;
    if (h->opens == 0 || --h->opens > 0)
        return true;
    if (h->buffered != NULL)
        good = fclose(h->buffered) == 0;
    else
        good = close(h->descriptor) == 0;
    h->buffered = NULL;
    h->descriptor = -1;
    return good;
}

static bool move_buffered(struct handle *h, const struct operation *o, char *buffer, int64_t *moved)
{
    if (h->position != o->offset && fseeko(h->buffered, (off_t)o->offset, SEEK_SET) != 0)
        return false;
    size_t size = (size_t)o->size;
    size_t count = o->kind == KIND_READ ? fread(buffer, 1, size, h->buffered) : fwrite(buffer, 1, size, h->buffered);
    *moved = (int64_t)count;
    h->position = o->offset + *moved;
    return o->kind == KIND_READ ? !ferror(h->buffered) : count == size;
}

static bool move(struct worker *w, const struct operation *o, int64_t *moved)
{
    struct handle *h = &w->handles[o->file];
    if (h->buffered != NULL)
        return move_buffered(h, o, w->buffer, moved);
    while (*moved < o->size || o->size == 0) {
        size_t rest = (size_t)(o->size - *moved);
        off_t at = (off_t)(o->offset + *moved);
        ssize_t count = o->kind == KIND_READ ? pread(h->descriptor, w->buffer, rest, at)
                                             : pwrite(h->descriptor, w->buffer, rest, at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        *moved += count;
        if (count == 0)
            break;
    }
    return true;
}

/* Like the program's own, these may fail without harm: a stat of a file that is not there is one. */
static bool metadata(struct worker *w, const struct operation *o, const char *path)
{
    struct stat status;
    char *other = NULL;
    bool good;
    switch (o->kind) {
    case KIND_STAT:
        return stat(path, &status) == 0;
    case KIND_UNLINK:
        return unlink(path) == 0;
    case KIND_MKDIR:
        return mkdir(path, 0700) == 0;
    case KIND_RENAME: /* where to is not in a trace: beside it costs the same */
        good = asprintf(&other, "%s.renamed", path) >= 0 && rename(path, other) == 0;
        free(other);
        return good;
    case KIND_CLOSE:
        return close_handle(&w->handles[o->file]);
    default:
        return open_handle(w, o->file, path);
    }
}

static enum group group_of(char kind)
{
    switch (kind) {
    case KIND_READ:
        return GROUP_READ;
    case KIND_WRITE:
        return GROUP_WRITE;
    case KIND_FSYNC:
    case KIND_FDATASYNC:
        return GROUP_SYNC;
    default:
        return GROUP_METADATA;
    }
}

static bool carry_out(struct worker *w, const struct operation *o)
{
    struct handle *h = &w->handles[o->file];
    char *path = full_path(w->recipe, w->roots, o->file);
    if (path == NULL)
        return fail(w, o, "out of memory for");
    bool uses = strchr("RWSDL", o->kind) != NULL;
    int64_t moved = 0, before = now_ns();
    if (uses && h->descriptor < 0) {
        atomic_fetch_add(&w->board->implicit_opens, 1);
        if (!open_handle(w, o->file, path)) {
            fail(w, o, "open");
            free(path);
            return false;
        }
    }
    bool good = true, fatal = uses;
    if (o->kind == KIND_READ || o->kind == KIND_WRITE)
        good = move(w, o, &moved);
    else if (o->kind == KIND_FSYNC || o->kind == KIND_FDATASYNC)
        good = (h->buffered == NULL || fflush(h->buffered) == 0)
               && (o->kind == KIND_FSYNC ? fsync(h->descriptor) : fdatasync(h->descriptor)) == 0;
    else if (o->kind == KIND_FLUSH)
        good = h->buffered == NULL || fflush(h->buffered) == 0;
    else
        good = metadata(w, o, path);
    int64_t took = now_ns() - before;
    free(path);
    if (!good && fatal)
        return fail(w, o, o->kind == KIND_READ ? "read" : o->kind == KIND_WRITE ? "write" : "sync");
    if (!good)
        atomic_fetch_add(&w->board->absent, 1);
    struct tally *tally = &w->board->files[o->file];
    enum group group = group_of(o->kind);
    atomic_fetch_add(&tally->count[group], 1);
    atomic_fetch_add(&tally->bytes[group], (uint64_t)moved);
    atomic_fetch_add(&tally->time[group], (uint64_t)took);
    return true;
}

bool stream_run(const struct recipe *recipe, char *const *roots, uint32_t number, struct board *board, bool think)
{
    const struct stream *s = &recipe->streams[number];
    struct worker w = {.recipe = recipe, .roots = roots, .board = board};
    size_t room = recipe->largest > 0 ? (size_t)recipe->largest : 1;
    w.handles = calloc(recipe->file_count + 1u, sizeof *w.handles);
    w.buffer = malloc(room);
    if (w.handles == NULL || w.buffer == NULL) {
        atomic_fetch_add(&board->failed, 1);
        return false;
    }
    /* Not zeros: some file systems store those for nothing. */
    uint64_t value = 0x9E3779B97F4A7C15u + number;
    for (size_t i = 0; i < room; i++) {
        value ^= value << 13, value ^= value >> 7, value ^= value << 17;
        w.buffer[i] = (char)value;
    }
    for (uint32_t i = 0; i < recipe->file_count; i++)
        w.handles[i].descriptor = -1;
    bool good = wait_for(&w, s->wait_first, s->wait_count);
    for (uint32_t i = s->first; good && i < s->first + s->count; i++) {
        const struct operation *o = &recipe->operations[i];
        good = wait_for(&w, o->wait_first, o->wait_count);
        if (good && think)
            sleep_until(board->began + o->time);
        good = good && carry_out(&w, o);
        atomic_fetch_add(&board->done[number], 1);
    }
    free(w.handles);
    free(w.buffer);
    return good;
}
