/* A storage with latency, for programs that run on a machine whose disk has none worth the name.
 *
 * Preloaded behind a tracer (LD_PRELOAD="libtracer.so libstorage.so"), it lets calls on files below
 * $STORAGE_UNDER take as long as on a storage across a network:
 *
 *   STORAGE_CALL_US  microseconds for each transfer
 *   STORAGE_META_US  microseconds for each open, stat or removal
 *   STORAGE_SYNC_US  microseconds for each sync
 *   STORAGE_MBPS     bytes a microsecond (MB/s), for each process
 *   STORAGE_SLOW     RANK:FACTOR, one rank (PMI_RANK) whose calls take FACTOR times as long
 *
 * A write that does not begin on a block (4 KiB) has to read that block first: it pays for three transfers.
 * Streams (stdio) pay for each 4 KiB of what is written in smaller pieces, because that is what their buffer
 * does, and once for a larger piece, which goes past the buffer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FILES 65536
#define BLOCK 4096

static char mine[FILES]; /* is this descriptor one of a file below the folder? */
static const char *under;
static double call_us, meta_us, sync_us, mbps, factor = 1;

__attribute__((constructor)) static void begin(void)
{
    const char *slow = getenv("STORAGE_SLOW"), *rank = getenv("PMI_RANK"), *value;
    int which;
    double times;
    under = getenv("STORAGE_UNDER");
    call_us = (value = getenv("STORAGE_CALL_US")) ? atof(value) : 0;
    meta_us = (value = getenv("STORAGE_META_US")) ? atof(value) : 0;
    sync_us = (value = getenv("STORAGE_SYNC_US")) ? atof(value) : 0;
    mbps = (value = getenv("STORAGE_MBPS")) ? atof(value) : 0;
    if (slow && rank && sscanf(slow, "%d:%lf", &which, &times) == 2 && which == atoi(rank))
        factor = times;
    prctl(PR_SET_TIMERSLACK, 1000UL);
}

static void take(double us)
{
    struct timespec t;
    us *= factor;
    if (us < 1)
        return;
    t.tv_sec = (time_t)(us / 1e6);
    t.tv_nsec = (long)((us - 1e6 * (double)t.tv_sec) * 1e3);
    nanosleep(&t, NULL);
}

static int below(const char *path) { return under && path && !strncmp(path, under, strlen(under)); }
static int known(int fd) { return fd >= 0 && fd < FILES && mine[fd]; }
static void moved(int fd, double bytes, double calls)
{
    if (known(fd) && bytes >= 0)
        take(calls * call_us + (mbps > 0 ? bytes / mbps : 0));
}
static double through_buffer(double bytes) { return bytes < BLOCK ? bytes / BLOCK : 1; }
/* Transfers that a write at `at` costs. */
static double writes(off_t at) { return at % BLOCK ? 3 : 1; }
/* Asked past the tracer, which would count it. */
static off_t position(int fd) { return known(fd) ? (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0; }
static int opened(const char *path, int fd)
{
    if (fd >= 0 && fd < FILES) {
        mine[fd] = (char)below(path);
        if (mine[fd])
            take(meta_us);
    }
    return fd;
}

/* The function of that name in the libraries behind this one. Looked up when this library is loaded, or before
 * if another one's start calls it: later a tracer may answer dlsym with its own. */
#define REAL(type, name, ...)                                                           \
    static type (*real_##name)(__VA_ARGS__);                                            \
    __attribute__((constructor)) static void find_##name(void)                          \
    {                                                                                   \
        if (!real_##name)                                                               \
            real_##name = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                \
    }
#define OPEN(name)                                                                      \
    REAL(int, name, const char *, int, ...)                                             \
    int name(const char *path, int flags, ...)                                          \
    {                                                                                   \
        va_list more;                                                                   \
        va_start(more, flags);                                                          \
        mode_t mode = va_arg(more, mode_t);                                             \
        va_end(more);                                                                   \
        find_##name();                                                                  \
        return opened(path, real_##name(path, flags, mode));                            \
    }
#define OPENAT(name)                                                                    \
    REAL(int, name, int, const char *, int, ...)                                        \
    int name(int folder, const char *path, int flags, ...)                              \
    {                                                                                   \
        va_list more;                                                                   \
        va_start(more, flags);                                                          \
        mode_t mode = va_arg(more, mode_t);                                             \
        va_end(more);                                                                   \
        find_##name();                                                                  \
        return opened(path, real_##name(folder, path, flags, mode));                    \
    }
#define TRANSFER(name, constness, calls)                                                \
    REAL(ssize_t, name, int, constness void *, size_t)                                  \
    ssize_t name(int fd, constness void *data, size_t size)                             \
    {                                                                                   \
        double cost = calls;                                                            \
        find_##name();                                                                  \
        ssize_t n = real_##name(fd, data, size);                                        \
        moved(fd, (double)n, cost);                                                     \
        return n;                                                                       \
    }
#define TRANSFER_AT(name, constness, calls)                                             \
    REAL(ssize_t, name, int, constness void *, size_t, off_t)                           \
    ssize_t name(int fd, constness void *data, size_t size, off_t at)                   \
    {                                                                                   \
        find_##name();                                                                  \
        ssize_t n = real_##name(fd, data, size, at);                                    \
        moved(fd, (double)n, calls);                                                    \
        return n;                                                                       \
    }
#define ON_FILE(name)                                                                   \
    REAL(int, name, int)                                                                \
    int name(int fd)                                                                    \
    {                                                                                   \
        if (known(fd))                                                                  \
            take(sync_us);                                                              \
        find_##name();                                                                  \
        return real_##name(fd);                                                         \
    }
#define STAT(name, kind)                                                                \
    REAL(int, name, const char *, struct kind *)                                        \
    int name(const char *path, struct kind *answer)                                     \
    {                                                                                   \
        if (below(path))                                                                \
            take(meta_us);                                                              \
        find_##name();                                                                  \
        return real_##name(path, answer);                                               \
    }
#define STATAT(name, kind)                                                              \
    REAL(int, name, int, const char *, struct kind *, int)                              \
    int name(int folder, const char *path, struct kind *answer, int flags)              \
    {                                                                                   \
        if (below(path))                                                                \
            take(meta_us);                                                              \
        find_##name();                                                                  \
        return real_##name(folder, path, answer, flags);                                \
    }
#define FOPEN(name)                                                                     \
    REAL(FILE *, name, const char *, const char *)                                      \
    FILE *name(const char *path, const char *mode)                                      \
    {                                                                                   \
        find_##name();                                                                  \
        FILE *stream = real_##name(path, mode);                                         \
        if (stream)                                                                     \
            opened(path, stream->_fileno);                                              \
        return stream;                                                                  \
    }
#define STREAM(name, constness)                                                         \
    REAL(size_t, name, constness void *, size_t, size_t, FILE *)                        \
    size_t name(constness void *data, size_t size, size_t count, FILE *stream)          \
    {                                                                                   \
        find_##name();                                                                  \
        size_t n = real_##name(data, size, count, stream);                              \
        moved(stream->_fileno, (double)(n * size), through_buffer((double)(n * size))); \
        return n;                                                                       \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
TRANSFER(read, , 1)
TRANSFER(write, const, writes(position(fd)))
TRANSFER_AT(pread, , 1)
TRANSFER_AT(pread64, , 1)
TRANSFER_AT(pwrite, const, writes(at))
TRANSFER_AT(pwrite64, const, writes(at))
ON_FILE(fsync)
ON_FILE(fdatasync)
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)
FOPEN(fopen)
FOPEN(fopen64)
STREAM(fread, )
STREAM(fwrite, const)

static int copied(int from, int to)
{
    if (to >= 0 && to < FILES)
        mine[to] = (char)known(from);
    return to;
}

REAL(int, dup, int)
int dup(int fd)
{
    find_dup();
    return copied(fd, real_dup(fd));
}

REAL(int, dup2, int, int)
int dup2(int from, int to)
{
    find_dup2();
    return copied(from, real_dup2(from, to));
}

REAL(int, close, int)
int close(int fd)
{
    if (fd >= 0 && fd < FILES)
        mine[fd] = 0;
    find_close();
    return real_close(fd);
}

REAL(int, unlink, const char *)
int unlink(const char *path)
{
    if (below(path))
        take(meta_us);
    find_unlink();
    return real_unlink(path);
}
