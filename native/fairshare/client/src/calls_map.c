// mmap of served files: for a private mapping a copy of the data as it is now.
//
// A shared one has to show what others write later, and the writer's own writes at once (SQLite and LMDB count
// on it). No copy does, so it is refused: programs that can do without (SQLite) read, others say so.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

static bool fill(struct description *d, char *memory, size_t size, off_t offset) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = fs_pread(d, memory + done, size - done, offset + (off_t)done);
        if (got < 0) return false;
        if (got == 0) break;
        done += (size_t)got;
    }
    return true;
}

EXPORT void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset) {
    struct description *d = flags & MAP_ANONYMOUS ? NULL : fs_get(fd);
    if (!d) return REAL(mmap)(where, size, protection, flags, fd, offset);
    if ((flags & MAP_TYPE) != MAP_PRIVATE) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    if (offset < 0 || offset % sysconf(_SC_PAGESIZE) != 0 || size == 0) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if ((d->flags & O_ACCMODE) == O_WRONLY) {
        errno = EACCES;
        return MAP_FAILED;
    }
    int copy = memfd_create("fairshare-copy", MFD_CLOEXEC);
    if (copy < 0) return MAP_FAILED;
    void *result = MAP_FAILED;
    char *memory = MAP_FAILED;
    if (REAL(ftruncate)(copy, (off_t)size) == 0)
        memory = REAL(mmap)(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
    if (memory != MAP_FAILED) {
        bool filled = fill(d, memory, size, offset);
        int problem = errno;
        munmap(memory, size);
        errno = problem;
        if (filled) result = REAL(mmap)(where, size, protection, flags, copy, 0);
    }
    int problem = errno;
    REAL(close)(copy);
    errno = problem;
    return result;
}
void *mmap64(void *where, size_t size, int protection, int flags, int fd, off_t offset) ALIAS(mmap);
