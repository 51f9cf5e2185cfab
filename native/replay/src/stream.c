#include "stream.h"

/* A page, or what storage transfers at least: O_DIRECT wants buffers that begin there. */
#define ALIGNMENT 4096
/* Woken this much before a gap is over; the rest is spent looking at the clock. */
#define EARLY_NS 50000
/* Whoever waits looks now and then whether another stream failed. */
#define LOOK_NS 100000000

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A file as one stream holds it; opens nest, as in a program that opens a file twice. */
struct handle {
    int opened; /* the descriptor plus one; 0: closed, as calloc leaves it: most streams touch few files */
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

/* Until CLOCK_MONOTONIC shows `moment`: at work where the program was, since what else the storage needs a
 * processor for waits meanwhile; else asleep, and awake for the last part, since waking takes its time. */
static void pause_until(int64_t moment)
{
    int64_t early = moment - EARLY_NS;
    if (early > now_ns()) {
        struct timespec t = {.tv_sec = early / 1000000000, .tv_nsec = early % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
        }
    }
    while (now_ns() < moment) {
    }
}

/* False when another stream failed: it will never get there. */
static bool wait_for(const struct worker *w, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        const struct wait *wait = &w->recipe->waits[i];
        _Atomic uint32_t *done = &w->board->done[wait->stream], *waiting = &w->board->waiting[wait->stream];
        for (unsigned tries = 0; atomic_load(done) < wait->count; tries++) {
            if (atomic_load(&w->board->failed))
                return false;
            if (tries < 64) {
                sched_yield();
                continue;
            }
            struct timespec look = {.tv_nsec = LOOK_NS};
            atomic_fetch_add(waiting, 1);
            uint32_t seen = atomic_load(done);
            if (seen < wait->count)
                syscall(SYS_futex, done, FUTEX_WAIT, seen, &look, NULL, 0);
            atomic_fetch_sub(waiting, 1);
        }
    }
    return true;
}

static void announce(struct board *board, uint32_t number)
{
    atomic_fetch_add(&board->done[number], 1);
    if (atomic_load(&board->waiting[number]))
        syscall(SYS_futex, &board->done[number], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int flags_of(int64_t how)
{
    int flags = O_CLOEXEC | (how & HOW_READ_ONLY ? O_RDONLY : O_RDWR) | (how & HOW_NO_CREATE ? 0 : O_CREAT);
    return flags | (how & HOW_TRUNCATE ? O_TRUNC : 0) | (how & HOW_SYNC ? O_DSYNC : 0) | (how & HOW_DIRECT ? O_DIRECT : 0);
}

static bool open_handle(struct worker *w, uint32_t number, const char *path, int64_t how)
{
    struct handle *h = &w->handles[number];
    const struct file *f = &w->recipe->files[number];
    if (h->opens++ > 0)
        return !(how & HOW_TRUNCATE) || ftruncate(h->opened - 1, 0) == 0;
    int flags = f->folder ? O_RDONLY | O_DIRECTORY | O_CLOEXEC : flags_of(how);
    int descriptor = open(path, flags, 0600);
    if (descriptor < 0 && errno == EINVAL && (flags & O_DIRECT))
        descriptor = open(path, flags & ~O_DIRECT, 0600); /* tmpfs, for one, knows none */
    if (descriptor < 0 && errno == ENOENT && !(flags & (O_CREAT | O_DIRECTORY)))
        descriptor = open(path, flags | O_CREAT, 0600); /* made by something that is not replayed */
    if (descriptor < 0 && errno == EISDIR)
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    h->opened = descriptor + 1;
    if (h->opened != 0 && f->buffered) {
        h->buffered = fdopen(descriptor, how & HOW_READ_ONLY ? "r" : "r+");
        h->position = 0;
    }
    if (h->opened == 0)
        h->opens = 0;
    return h->opened != 0;
}

static bool close_handle(struct handle *h)
{
    bool good = true;
    if (h->opens == 0 || --h->opens > 0)
        return true;
    if (h->buffered != NULL)
        good = fclose(h->buffered) == 0;
    else
        good = close(h->opened - 1) == 0;
    h->buffered = NULL;
    h->opened = 0;
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
        ssize_t count = o->kind == KIND_READ ? pread(h->opened - 1, w->buffer, rest, at)
                                             : pwrite(h->opened - 1, w->buffer, rest, at);
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

static bool list(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    while (readdir(folder) != NULL) {
    }
    return closedir(folder) == 0;
}

/* The other name of a rename or a link; where a trace does not tell it, one beside it costs the same. */
static char *other_name(const struct worker *w, const struct operation *o, const char *path)
{
    char *other = NULL;
    if (o->offset > 0)
        return full_path(w->recipe, w->roots, (uint32_t)(o->offset - 1));
    return asprintf(&other, "%s.renamed", path) < 0 ? NULL : other;
}

/* Asked for, and never waited for: who waited for whom, the recipe says. One that another stream still holds is
 * refused, which asks the storage all the same. */
static bool lock(const struct handle *h, const struct operation *o)
{
    struct flock range = {.l_whence = SEEK_SET, .l_start = (off_t)o->offset, .l_len = (off_t)o->size};
    range.l_type = o->kind == KIND_LOCK ? F_WRLCK : o->kind == KIND_LOCK_SHARED ? F_RDLCK : F_UNLCK;
    return h->opened != 0 && fcntl(h->opened - 1, F_SETLK, &range) == 0;
}

/* The descriptor of the file where the program used its own, and it is open here; else -1. A server is asked
 * for every part of a name, and not for an open file. */
static int held(const struct worker *w, const struct operation *o)
{
    return o->size == 1 ? w->handles[o->file].opened - 1 : -1;
}

/* Like the program's own, these may fail without harm: a stat of a file that is not there is one. */
static bool metadata(struct worker *w, const struct operation *o, const char *path)
{
    struct stat status;
    char *other = NULL;
    bool good;
    int descriptor = -1;
    switch (o->kind) {
    case KIND_STAT:
        descriptor = held(w, o);
        return (descriptor >= 0 ? fstat(descriptor, &status) : stat(path, &status)) == 0;
    case KIND_UNLINK:
        return unlink(path) == 0;
    case KIND_MKDIR:
        return mkdir(path, 0700) == 0;
    case KIND_RMDIR:
        return rmdir(path) == 0;
    case KIND_LIST:
        return list(path);
    case KIND_ATTRIBUTES: /* times, mode and owner alike change the inode */
        descriptor = held(w, o);
        return (descriptor >= 0 ? futimens(descriptor, NULL) : utimensat(AT_FDCWD, path, NULL, 0)) == 0;
    case KIND_TRUNCATE:
        descriptor = held(w, o);
        return (descriptor >= 0 && ftruncate(descriptor, (off_t)o->offset) == 0)
               || truncate(path, (off_t)o->offset) == 0; /* it may be open for reading alone here */
    case KIND_RENAME:
    case KIND_LINK:
        other = other_name(w, o, path);
        good = other != NULL && (o->kind == KIND_RENAME ? rename(path, other) : link(path, other)) == 0;
        free(other);
        return good;
    case KIND_LOCK:
    case KIND_LOCK_SHARED:
    case KIND_UNLOCK:
        return lock(&w->handles[o->file], o);
    case KIND_CLOSE:
        return close_handle(&w->handles[o->file]);
    default:
        return open_handle(w, o->file, path, o->size);
    }
}

/* Not every storage can; what the program did then is in its other calls. */
static bool allocate(const struct handle *h, const struct operation *o)
{
    int mode = o->kind == KIND_ALLOCATE_KEEP ? FALLOC_FL_KEEP_SIZE : 0;
    return fallocate(h->opened - 1, mode, (off_t)o->offset, (off_t)o->size) == 0;
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
    bool uses = strchr("RWSDLPQ", o->kind) != NULL;
    int64_t moved = 0, before = now_ns();
    if (uses && h->opened == 0) {
        atomic_fetch_add(&w->board->implicit_opens, 1);
        if (!open_handle(w, o->file, path, 0)) {
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
               && (o->kind == KIND_FSYNC ? fsync(h->opened - 1) : fdatasync(h->opened - 1)) == 0;
    else if (o->kind == KIND_FLUSH)
        good = h->buffered == NULL || fflush(h->buffered) == 0;
    else if (o->kind == KIND_ALLOCATE || o->kind == KIND_ALLOCATE_KEEP)
        fatal = false, good = allocate(h, o);
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

/* Room for the largest transfer of a stream. Not zeros: some file systems store those for nothing. */
static char *new_buffer(const struct recipe *recipe, uint32_t number)
{
    const struct stream *s = &recipe->streams[number];
    size_t largest = 1;
    for (uint32_t i = s->first; i < s->first + s->count; i++) {
        const struct operation *o = &recipe->operations[i];
        if ((o->kind == KIND_READ || o->kind == KIND_WRITE) && (size_t)o->size > largest)
            largest = (size_t)o->size;
    }
    size_t room = (largest + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = NULL;
    if (posix_memalign(&memory, ALIGNMENT, room) != 0)
        return NULL;
    uint64_t value = 0x9E3779B97F4A7C15u + number, *words = memory;
    for (size_t i = 0; i < room / sizeof *words; i++) {
        value ^= value << 13, value ^= value >> 7, value ^= value << 17;
        words[i] = value;
    }
    return memory;
}

bool stream_run(const struct recipe *recipe, char *const *roots, uint32_t number, struct board *board, bool think)
{
    const struct stream *s = &recipe->streams[number];
    struct worker w = {.recipe = recipe, .roots = roots, .board = board};
    if (!wait_for(&w, s->wait_first, s->wait_count))
        return false;
    w.handles = calloc(recipe->file_count + 1u, sizeof *w.handles);
    w.buffer = new_buffer(recipe, number);
    if (w.handles == NULL || w.buffer == NULL) {
        atomic_fetch_add(&board->failed, 1);
        free(w.handles);
        free(w.buffer);
        return false;
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    bool good = true;
    int64_t ended = now_ns();
    for (uint32_t i = s->first; good && i < s->first + s->count; i++) {
        const struct operation *o = &recipe->operations[i];
        good = wait_for(&w, o->wait_first, o->wait_count);
        if (good && think)
            pause_until((o->wait_count > 0 ? now_ns() : ended) + o->gap);
        good = good && carry_out(&w, o);
        ended = now_ns();
        announce(board, number);
    }
    free(w.handles);
    free(w.buffer);
    return good;
}
