// mmap of served files: a copy of the data as it is now, which cannot be written back.
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
    bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    if (shared && protection & PROT_WRITE) {
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
    // A sealed file in memory: even mprotect cannot make a shared mapping of it writable, so nobody
    // writes to a copy and believes to have written to the file.
    int copy = memfd_create("fairshare-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
        if (filled && REAL(fcntl)(copy, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0)
            result = REAL(mmap)(where, size, protection, flags, copy, 0);
    }
    int problem = errno;
    REAL(close)(copy);
    errno = problem;
    return result;
}
void *mmap64(void *where, size_t size, int protection, int flags, int fd, off_t offset) ALIAS(mmap);
