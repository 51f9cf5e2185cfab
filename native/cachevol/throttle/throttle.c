/* A slow base storage for experiments, honest about what it is: with LD_PRELOAD, reads and writes of files below
   CACHEVOL_THROTTLE_FOLDER take at least as long as a storage of that speed would need. All processes that name the
   same CACHEVOL_THROTTLE_STATE share the speed.

     CACHEVOL_THROTTLE_RATE      bytes a second
     CACHEVOL_THROTTLE_LATENCY   seconds for each call, default 0
     CACHEVOL_THROTTLE_LATE      yes: what is written is there when that time is over, not when it begins
     CACHEVOL_THROTTLE_CACHED    yes: what was read before by this process costs nothing (a page cache)          */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 65536 /* bytes, of the page cache that CACHED stands for */
#define FILES 64

static char              folder[PATH_MAX];
static size_t            folder_length;
static double            rate, latency;
static bool              cached, late;
static _Atomic uint64_t  private_free_at;
static _Atomic uint64_t *free_at = &private_free_at; /* ns of the monotonic clock: when the storage is idle again */

static struct {
    dev_t          device;
    ino_t          inode;
    unsigned char *seen;
    size_t         blocks;
} files[FILES];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void)
{
    const char *where = getenv("CACHEVOL_THROTTLE_FOLDER"), *speed = getenv("CACHEVOL_THROTTLE_RATE");
    const char *wait = getenv("CACHEVOL_THROTTLE_LATENCY"), *state = getenv("CACHEVOL_THROTTLE_STATE");
    const char *cache = getenv("CACHEVOL_THROTTLE_CACHED"), *delay = getenv("CACHEVOL_THROTTLE_LATE");

    if (!where || !speed || !realpath(where, folder))
        return;
    folder_length = strlen(folder);
    rate          = strtod(speed, NULL);
    latency       = wait ? strtod(wait, NULL) : 0;
    cached        = cache && !strcmp(cache, "yes");
    late          = delay && !strcmp(delay, "yes");
    int fd        = state ? open(state, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        void *map = posix_fallocate(fd, 0, 8) ? MAP_FAILED
                                              : mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED)
            free_at = map;
        close(fd);
    }
}

static uint64_t ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool below_folder(int fd, struct stat *there)
{
    char link[64], path[PATH_MAX];

    if (rate <= 0 || fstat(fd, there) || !S_ISREG(there->st_mode))
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > (ssize_t)folder_length && !memcmp(path, folder, folder_length) && path[folder_length] == '/';
}

/* Bytes of the range that were not read before, by blocks. */
static uint64_t not_seen(const struct stat *there, uint64_t at, uint64_t size)
{
    uint64_t fresh = 0;
    int      slot  = 0;

    pthread_mutex_lock(&files_lock);
    while (slot < FILES && files[slot].seen &&
           (files[slot].device != there->st_dev || files[slot].inode != there->st_ino))
        slot++;
    if (slot < FILES && !files[slot].seen) {
        files[slot].device = there->st_dev, files[slot].inode = there->st_ino;
        files[slot].blocks = (size_t)there->st_size / BLOCK + 1;
        files[slot].seen   = calloc(files[slot].blocks, 1);
    }
    for (uint64_t block = at / BLOCK; block * BLOCK < at + size; block++) {
        bool known = slot < FILES && files[slot].seen && block < files[slot].blocks;
        if (!known || !files[slot].seen[block])
            fresh += BLOCK;
        if (known)
            files[slot].seen[block] = 1;
    }
    pthread_mutex_unlock(&files_lock);
    return fresh < size ? fresh : size;
}

/* Waits as long as the storage is busy with this, which began at `now`, and with what came before it. */
static void spend(uint64_t bytes, uint64_t now)
{
    uint64_t cost = (uint64_t)(((double)bytes / rate + latency) * 1e9);
    uint64_t busy = atomic_load(free_at), until;

    do
        until = (busy > now ? busy : now) + cost;
    while (!atomic_compare_exchange_weak(free_at, &busy, until));
    struct timespec then = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) == EINTR)
        ;
}

static void after_read(int fd, ssize_t done, off_t at, uint64_t begun)
{
    struct stat there;
    int         error = errno;

    if (done > 0 && below_folder(fd, &there)) {
        uint64_t bytes = cached ? not_seen(&there, (uint64_t)at, (uint64_t)done) : (uint64_t)done;
        if (bytes)
            spend(bytes, begun);
    }
    errno = error;
}

/* Where data are to be late, this waits, and after_write does not. */
static uint64_t before_write(int fd, uint64_t size)
{
    struct stat there;
    uint64_t    begun = ticks();

    if (late && below_folder(fd, &there))
        spend(size, begun);
    return begun;
}

static uint64_t size_of(const struct iovec *parts, int count)
{
    uint64_t size = 0;

    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

static void after_write(int fd, ssize_t done, uint64_t begun)
{
    struct stat there;
    int         error = errno;

    if (!late && done > 0 && below_folder(fd, &there))
        spend((uint64_t)done, begun);
    errno = error;
}

#define REAL(name) static __typeof__(&name) real; if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    REAL(pread);
    uint64_t begun = ticks();
    ssize_t  done  = real(fd, data, size, at);
    after_read(fd, done, at, begun);
    return done;
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at)
{
    REAL(pread64);
    uint64_t begun = ticks();
    ssize_t  done  = real(fd, data, size, at);
    after_read(fd, done, at, begun);
    return done;
}

ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t at)
{
    REAL(preadv64);
    uint64_t begun = ticks();
    ssize_t  done  = real(fd, parts, count, at);
    after_read(fd, done, at, begun);
    return done;
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t at)
{
    REAL(preadv);
    uint64_t begun = ticks();
    ssize_t  done  = real(fd, parts, count, at);
    after_read(fd, done, at, begun);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    uint64_t begun = before_write(fd, size);
    ssize_t  done  = real(fd, data, size, at);
    after_write(fd, done, begun);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    uint64_t begun = before_write(fd, size);
    ssize_t  done  = real(fd, data, size, at);
    after_write(fd, done, begun);
    return done;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    REAL(pwritev);
    uint64_t begun = before_write(fd, size_of(parts, count));
    ssize_t  done  = real(fd, parts, count, at);
    after_write(fd, done, begun);
    return done;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
    REAL(pwritev64);
    uint64_t begun = before_write(fd, size_of(parts, count));
    ssize_t  done  = real(fd, parts, count, at);
    after_write(fd, done, begun);
    return done;
}
