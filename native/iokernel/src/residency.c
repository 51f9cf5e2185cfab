#include "residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

/* cachestat has one number on all architectures but alpha; older headers do not name it */
#define CACHESTAT_NUMBER 451

/* the kernel's structures (linux/mman.h of 6.5), for building with older headers */
struct cache_range {
    uint64_t offset, length; /* length 0: to the end of the file */
};
struct cache_state {
    uint64_t cached, dirty, writeback, evicted, recently_evicted; /* pages */
};

#define EVICT_ROUNDS 8
#define MINCORE_WINDOW (INT64_C(1) << 30)

static long cachestat_call(int fd, struct cache_range *range, struct cache_state *state)
{
    return syscall(CACHESTAT_NUMBER, fd, range, state, 0);
}

bool residency_has_cachestat(void)
{
    /* a bad descriptor is refused with EBADF by a kernel that knows the call, with ENOSYS by one that does not */
    struct cache_range range = {0};
    struct cache_state state;
    return cachestat_call(-1, &range, &state) != 0 && errno == EBADF;
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* Resident bytes by mincore, window by window, or -1. */
static int64_t by_mincore(int fd, int64_t size)
{
    int64_t page = sysconf(_SC_PAGESIZE), resident = 0;
    unsigned char *pages = malloc((size_t)(MINCORE_WINDOW / page));
    if (!pages)
        return -1;
    for (int64_t at = 0; at < size; at += MINCORE_WINDOW) {
        int64_t length = at_most(size - at, MINCORE_WINDOW), count = (length + page - 1) / page;
        void *map = mmap(NULL, (size_t)length, PROT_READ, MAP_SHARED, fd, at);
        bool good = map != MAP_FAILED && mincore(map, (size_t)length, pages) == 0;
        for (int64_t i = 0; good && i < count; i++)
            if (pages[i] & 1)
                resident += page;
        if (map != MAP_FAILED)
            munmap(map, (size_t)length);
        if (!good) {
            free(pages);
            return -1;
        }
    }
    free(pages);
    return at_most(resident, size);
}

static void measure_open(int fd, struct residency *r)
{
    struct stat st;
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    r->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    r->file = r->regular ? st.st_size : 0;
    r->resident = 0;
    r->dirty = -1;
    r->method = "none";
    r->caching = filesystem_caching(fd);
    struct cache_range range = {0};
    struct cache_state state;
    bool stacked = r->caching == CACHING_BELOW || r->caching == CACHING_MEMORY; /* perhaps an overlay */
    if (!stacked && cachestat_call(fd, &range, &state) == 0) {
        int64_t page = sysconf(_SC_PAGESIZE);
        r->method = "cachestat";
        r->resident = at_most((int64_t)state.cached * page, r->file);
        r->dirty = at_most((int64_t)(state.dirty + state.writeback) * page, r->file);
    } else {
        /* since Linux 5.2 mincore reports every page as resident to a caller that may not write the file */
        r->foreign = r->regular && st.st_uid != geteuid() && access(self, W_OK) != 0;
        int64_t resident = r->foreign ? -1 : by_mincore(fd, r->file);
        if (resident >= 0) {
            r->method = "mincore";
            r->resident = resident;
        }
    }
    if (filesystem_untold(r->caching))
        r->method = "none";
}

const char *residency_unknown(const struct residency *r)
{
    if (r->method && strcmp(r->method, "none") != 0)
        return NULL;
    const char *reason = filesystem_untold(r->caching);
    return reason       ? reason
           : r->foreign ? "the kernel tells only those who may write a file how much of it is in memory"
                        : "this kernel does not tell how much of a file is in memory";
}

int residency_measure(const char *path, struct residency *r)
{
    *r = (struct residency){.dirty = -1, .method = "none", .caching = CACHING_UNKNOWN};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    measure_open(fd, r);
    close(fd);
    return 0;
}

int residency_evict(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = 0;
    for (int round = 0; round < EVICT_ROUNDS && !error; round++) {
        /* dirty pages cannot be dropped */
        if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
            error = errno;
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        struct residency r = {0};
        measure_open(fd, &r);
        if (r.resident == 0 || r.caching == CACHING_MEMORY)
            break;
        sleep_ns(1000000 << round);
    }
    close(fd);
    return error;
}
