// read and write: which of them go past the kernel.
//
// The descriptor is the kernel's, and so is its position. A call goes through shared memory where it can be shown, each
// time anew, that this comes to the same:
// - the descriptor is a regular file of the mount, opened for this and nothing odd (no O_APPEND, O_DIRECT, O_SYNC);
// - the kernel has no page of that part of the file: none that is newer than what the server has (a mapping's), and none
//   that would be older afterwards (cachestat);
// - what is read lies inside the file, so that the position moves by as much as was asked for;
// - the server knows the file by a handle that this user opened, in that way. Handles are never given out again.
// All else is the real function's.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "accelerate.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

// Bytes from which on it pays, and that a kernel moves at once at most.
enum { LEAST = 64 << 10, MOST = 0x7ffff000, KNOWN = 16 };

struct known {
    uint64_t inode;
    int access;
    uint64_t handle;
};

static bool on;
static unsigned mount_major, mount_minor;
// Of each thread, so that nobody changes them meanwhile. A signal's handler that comes between goes to the kernel.
static _Thread_local struct known known[KNOWN];
static _Thread_local volatile sig_atomic_t inside;

// `sync`: AT_STATX_DONT_SYNC for what the kernel knows, AT_STATX_FORCE_SYNC for what the server knows.
static bool look(int fd, const char *path, int sync, struct statx *about) {
    const int flags = sync | AT_NO_AUTOMOUNT | (path[0] ? 0 : AT_EMPTY_PATH);
    return statx(fd, path, flags, STATX_TYPE | STATX_INO | STATX_SIZE, about) == 0;
}

__attribute__((constructor)) static void start(void) {
    struct statx about;
    const char *mount = getenv("FAIRSHARE_MOUNT");
    if (!mount || !look(AT_FDCWD, mount, AT_STATX_DONT_SYNC, &about)) return;
    mount_major = about.stx_dev_major;
    mount_minor = about.stx_dev_minor;
    on = true;
}

// Whether the kernel has no page of it. Where it does not say so, that is not known.
static bool nothing_kept(int fd, off_t offset, size_t size) {
    struct {
        uint64_t at, length;
    } part = {(uint64_t)offset, size};
    struct {
        uint64_t cached, dirty, written_back, evicted, lately;
    } pages;
    return syscall(SYS_cachestat, fd, &part, &pages, 0) == 0 &&
           pages.cached + pages.dirty + pages.written_back == 0;
}

static bool no_limit(off_t end) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || (rlim_t)end <= limit.rlim_cur);
}

// A session and a handle for an open file; `anew`: the handle that was known is not good any more.
static struct session *find(int fd, uint64_t inode, int access, bool anew, uint64_t *handle) {
    struct known *k = &known[(inode * 3 + (uint64_t)access) % KNOWN];
    struct session *s = fs_session(NULL);
    if (s && !anew && k->handle && k->inode == inode && k->access == access) {
        *handle = k->handle;
        return s;
    }
    struct fs_vouched said;
    k->handle = 0;
    if (ioctl(fd, FS_IOCTL, &said) != 0) return NULL;
    s = fs_session(&said);
    *k = (struct known){inode, access, said.handle};
    *handle = said.handle;
    return s;
}

// Move data at an offset, by shared memory or else by the kernel.
static ssize_t at_offset(int fd, uint64_t inode, int access, bool out, void *buffer, size_t size, off_t offset) {
    if ((!out || no_limit(offset + (off_t)size)) && nothing_kept(fd, offset, size)) {
        for (int attempt = 0; attempt < 2; attempt++) {
            uint64_t handle;
            struct session *s = find(fd, inode, access, attempt > 0, &handle);
            if (!s) break;
            ssize_t moved = fs_bulk(s, handle, out, buffer, size, offset);
            if (moved > 0) return moved;
            if (moved == LOST) s->lost = true;
            if (moved != LOST && moved != -EBADF) break;  // the kernel says what is wrong, or that nothing is
        }
    }
    return out ? REAL(pwrite)(fd, buffer, size, offset) : REAL(pread)(fd, buffer, size, offset);
}

// The same at the descriptor's position, which others may share: moving it first makes the part ours.
static ssize_t at_position(int fd, const struct statx *about, int access, bool out, void *buffer, size_t size) {
    off_t end = lseek(fd, (off_t)size, SEEK_CUR), start = end - (off_t)size;
    if (end < 0) return out ? REAL(write)(fd, buffer, size) : REAL(read)(fd, buffer, size);
    ssize_t moved = at_offset(fd, about->stx_ino, access, out, buffer, size, start);
    int problem = errno;
    if (moved < (ssize_t)size && lseek(fd, 0, SEEK_CUR) == end) lseek(fd, start + (moved > 0 ? moved : 0), SEEK_SET);
    errno = problem;
    return moved;
}

// `offset` is below 0 for the descriptor's position. False: the real function is to do it.
static bool moves(int fd, bool out, void *buffer, size_t size, off_t offset, ssize_t *moved) {
    if (size < LEAST || size > MOST || !on || inside) return false;
    const int odd = O_APPEND | O_DIRECT | O_DSYNC | O_PATH;
    int problem = errno, flags = fcntl(fd, F_GETFL);
    struct statx about;
    bool ours = flags >= 0 && !(flags & odd) && (flags & O_ACCMODE) != (out ? O_RDONLY : O_WRONLY) &&
                look(fd, "", AT_STATX_DONT_SYNC, &about) && about.stx_dev_major == mount_major && about.stx_dev_minor == mount_minor &&
                S_ISREG(about.stx_mode);
    off_t from = ours && offset < 0 ? lseek(fd, 0, SEEK_CUR) : offset;
    // The kernel does not know of what was appended past it.
    if (!ours || from < 0 ||
        (!out && (uint64_t)from + size > about.stx_size &&
         (!look(fd, "", AT_STATX_FORCE_SYNC, &about) || (uint64_t)from + size > about.stx_size))) {
        errno = problem;
        return false;
    }
    inside = 1;
    int access = flags & O_ACCMODE;
    *moved = offset < 0 ? at_position(fd, &about, access, out, buffer, size)
                        : at_offset(fd, about.stx_ino, access, out, buffer, size, offset);
    inside = 0;
    if (*moved >= 0) errno = problem;
    return true;
}

EXPORT ssize_t read(int fd, void *buffer, size_t size) {
    ssize_t moved;
    return moves(fd, false, buffer, size, -1, &moved) ? moved : REAL(read)(fd, buffer, size);
}

EXPORT ssize_t write(int fd, const void *buffer, size_t size) {
    ssize_t moved;
    return moves(fd, true, (void *)(uintptr_t)buffer, size, -1, &moved) ? moved : REAL(write)(fd, buffer, size);
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset) {
    ssize_t moved;
    return offset >= 0 && moves(fd, false, buffer, size, offset, &moved) ? moved : REAL(pread)(fd, buffer, size, offset);
}
ssize_t pread64(int fd, void *buffer, size_t size, off_t offset) ALIAS(pread);

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset) {
    ssize_t moved;
    return offset >= 0 && moves(fd, true, (void *)(uintptr_t)buffer, size, offset, &moved)
               ? moved
               : REAL(pwrite)(fd, buffer, size, offset);
}
ssize_t pwrite64(int fd, const void *buffer, size_t size, off_t offset) ALIAS(pwrite);

// What read and pread are where programs are compiled with checks of their buffers.
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room) {
    if (size > room) abort();
    return read(fd, buffer, size);
}

ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room) {
    if (size > room) abort();
    return pread(fd, buffer, size, offset);
}
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off_t offset, size_t room) ALIAS(__pread_chk);
