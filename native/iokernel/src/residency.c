#include "residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
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

/* file system magics, statfs(2) */
enum {
    MAGIC_TMPFS = 0x01021994,
    MAGIC_RAMFS = (int)0x858458f6,
    MAGIC_HUGETLBFS = (int)0x958458f6,
    MAGIC_EXT = 0xef53,
    MAGIC_XFS = 0x58465342,
    MAGIC_BTRFS = (int)0x9123683e,
    MAGIC_F2FS = (int)0xf2f52010,
    MAGIC_OVERLAY = 0x794c7630,
    MAGIC_ZFS = 0x2fc12fc1,
};

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
    struct statfs fs;
    r->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    r->file = r->regular ? st.st_size : 0;
    r->resident = 0;
    r->dirty = -1;
    r->method = "none";
    if (fstatfs(fd, &fs) == 0)
        r->memory_backed = (int)fs.f_type == MAGIC_TMPFS || (int)fs.f_type == MAGIC_RAMFS ||
                           (int)fs.f_type == MAGIC_HUGETLBFS;
    struct cache_range range = {0};
    struct cache_state state;
    if (cachestat_call(fd, &range, &state) == 0) {
        int64_t page = sysconf(_SC_PAGESIZE);
        r->method = "cachestat";
        r->resident = at_most((int64_t)state.cached * page, r->file);
        r->dirty = at_most((int64_t)(state.dirty + state.writeback) * page, r->file);
        return;
    }
    int64_t resident = by_mincore(fd, r->file);
    if (resident >= 0) {
        r->method = "mincore";
        r->resident = resident;
    }
}

int residency_measure(const char *path, struct residency *r)
{
    *r = (struct residency){.dirty = -1, .method = "none"};
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
        if (r.resident == 0 || r.memory_backed)
            break;
        sleep_ns(1000000 << round);
    }
    close(fd);
    return error;
}

bool residency_node_local(const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return false;
    switch ((int)fs.f_type) {
    case MAGIC_TMPFS:
    case MAGIC_RAMFS:
    case MAGIC_HUGETLBFS:
    case MAGIC_EXT:
    case MAGIC_XFS:
    case MAGIC_BTRFS:
    case MAGIC_F2FS:
    case MAGIC_OVERLAY:
    case MAGIC_ZFS:
        return true;
    default:
        return false;
    }
}
