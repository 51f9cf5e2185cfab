// read, write and what else moves data or the position.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client.h"
#include "real.h"
#include "stripe.h"

static bool refused(struct description *d, int access) {
    if (d->flags & O_PATH || (d->flags & O_ACCMODE) == access) {
        errno = EBADF;
        return true;
    }
    if (d->directory) {
        errno = access == O_WRONLY ? EISDIR : EBADF;
        return true;
    }
    return false;
}

ssize_t fs_pread(struct description *d, void *buffer, size_t size, off_t offset) {
    if (refused(d, O_WRONLY)) return -1;
    if (offset < 0) return fs_fail(EINVAL);
    return fs_bulk(d, false, buffer, size, offset);
}

ssize_t fs_pwrite(struct description *d, const void *buffer, size_t size, off_t offset) {
    if (refused(d, O_RDONLY)) return -1;
    if (offset < 0) return fs_fail(EINVAL);
    return fs_bulk(d, true, (void *)(uintptr_t)buffer, size, offset);
}

static ssize_t at_position(struct description *d, bool write, void *buffer, size_t size) {
    if (d->shared) return fs_bulk(d, write, buffer, size, FS_AT_POSITION);
    pthread_mutex_lock(&d->lock);
    ssize_t moved = fs_bulk(d, write, buffer, size, d->shared ? FS_AT_POSITION : d->position);
    // Appending sets the position itself: behind what it wrote.
    if (moved > 0 && !d->shared && !(write && d->flags & O_APPEND)) d->position += moved;
    pthread_mutex_unlock(&d->lock);
    return moved;
}

ssize_t fs_read(struct description *d, void *buffer, size_t size) {
    return refused(d, O_WRONLY) ? -1 : at_position(d, false, buffer, size);
}

ssize_t fs_write(struct description *d, const void *buffer, size_t size) {
    return refused(d, O_RDONLY) ? -1 : at_position(d, true, (void *)(uintptr_t)buffer, size);
}

off_t fs_seek(struct description *d, off_t offset, int whence) {
    pthread_mutex_lock(&d->lock);
    off_t result = -1;
    if (!d->shared && (whence == SEEK_SET || whence == SEEK_CUR)) {
        off_t base = whence == SEEK_CUR ? d->position : 0;
        if (__builtin_add_overflow(base, offset, &result) || result < 0) {
            errno = EINVAL;
            result = -1;
        } else {
            d->position = result;
        }
    } else {
        struct call c = {.request = {.op = FS_SEEK, .flags = d->shared ? FS_SET : 0, .offset = offset,
                                     .mode = (uint32_t)whence}, .at = d};
        int64_t at = fs_do(&c);
        if (at < 0) {
            errno = (int)-at;
        } else {
            result = (off_t)at;
            if (!d->shared) d->position = result;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return result;
}

BY_FD(ssize_t, read, (int fd, void *buffer, size_t size), (fd, buffer, size),
      fs_read(d, buffer, size))

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room) {
    if (size > room) abort();
    return read(fd, buffer, size);
}

BY_FD(ssize_t, write, (int fd, const void *buffer, size_t size), (fd, buffer, size),
      fs_write(d, buffer, size))

BY_FD(ssize_t, pread, (int fd, void *buffer, size_t size, off_t offset), (fd, buffer, size, offset),
      fs_pread(d, buffer, size, offset))
ssize_t pread64(int fd, void *buffer, size_t size, off_t offset) ALIAS(pread);

ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room) {
    if (size > room) abort();
    return pread(fd, buffer, size, offset);
}
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off_t offset, size_t room) ALIAS(__pread_chk);

BY_FD(ssize_t, pwrite, (int fd, const void *buffer, size_t size, off_t offset), (fd, buffer, size, offset),
      fs_pwrite(d, buffer, size, offset))
ssize_t pwrite64(int fd, const void *buffer, size_t size, off_t offset) ALIAS(pwrite);

// ---- vectors ----
// One request for all parts, so that an append stays in one piece and no reader sees a half.
static ssize_t total(const struct iovec *parts, int count) {
    size_t sum = 0;
    if (count < 0 || count > IOV_MAX) goto wrong;
    for (int i = 0; i < count; i++)
        if (__builtin_add_overflow(sum, parts[i].iov_len, &sum) || sum > SSIZE_MAX) goto wrong;
    return (ssize_t)sum;
wrong:
    errno = EINVAL;
    return -1;
}

static ssize_t vector(struct description *d, bool write, const struct iovec *parts, int count, off_t offset) {
    ssize_t size = total(parts, count);
    if (size < 0) return -1;
    if (count == 1) {
        void *at = parts[0].iov_base;
        if (offset < 0) return write ? fs_write(d, at, (size_t)size) : fs_read(d, at, (size_t)size);
        return write ? fs_pwrite(d, at, (size_t)size, offset) : fs_pread(d, at, (size_t)size, offset);
    }
    char *whole = malloc(size ? (size_t)size : 1);
    if (!whole) return fs_fail(ENOMEM);
    size_t at = 0;
    for (int i = 0; write && i < count; at += parts[i++].iov_len)
        memcpy(whole + at, parts[i].iov_base, parts[i].iov_len);
    ssize_t moved = offset < 0 ? (write ? fs_write(d, whole, (size_t)size) : fs_read(d, whole, (size_t)size))
                    : write    ? fs_pwrite(d, whole, (size_t)size, offset)
                               : fs_pread(d, whole, (size_t)size, offset);
    at = 0;
    for (int i = 0; !write && i < count && moved > 0 && at < (size_t)moved; i++) {
        size_t left = (size_t)moved - at, now = parts[i].iov_len < left ? parts[i].iov_len : left;
        memcpy(parts[i].iov_base, whole + at, now);
        at += now;
    }
    free(whole);
    return moved;
}

BY_FD(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count),
      vector(d, false, parts, count, -1))

BY_FD(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count),
      vector(d, true, parts, count, -1))

static bool negative(off_t offset) {
    if (offset < 0) errno = EINVAL;
    return offset < 0;
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(preadv)(fd, parts, count, offset);
    return negative(offset) ? -1 : vector(d, false, parts, count, offset);
}
ssize_t preadv64(int fd, const struct iovec *parts, int count, off_t offset) ALIAS(preadv);

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(pwritev)(fd, parts, count, offset);
    return negative(offset) ? -1 : vector(d, true, parts, count, offset);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) ALIAS(pwritev);

// Of the flags only hints mean the same here; a promise (RWF_DSYNC...) that cannot be kept is refused.
static bool only_hints(int flags) {
    if (flags & ~RWF_HIPRI) errno = EOPNOTSUPP;
    return !(flags & ~RWF_HIPRI);
}

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(preadv2)(fd, parts, count, offset, flags);
    return only_hints(flags) ? vector(d, false, parts, count, offset) : -1;
}
ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off_t offset, int flags) ALIAS(preadv2);

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(pwritev2)(fd, parts, count, offset, flags);
    return only_hints(flags) ? vector(d, true, parts, count, offset) : -1;
}
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t offset, int flags) ALIAS(pwritev2);

BY_FD(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence),
      fs_seek(d, offset, whence))
off_t lseek64(int fd, off_t offset, int whence) ALIAS(lseek);

// ---- lengths and durability ----
static int on_handle(struct description *d, uint32_t op, uint32_t mode, off_t offset, off_t size) {
    if (offset < 0 || size < 0) return fs_fail(EINVAL);
    struct call c = {.request = {.op = op, .mode = mode, .offset = offset, .size = (uint64_t)size}, .at = d};
    return fs_answer(fs_do(&c));
}

EXPORT int ftruncate(int fd, off_t size) {
    struct description *d = fs_get(fd);
    if (d && d->stripes && size >= 0 && (d->flags & O_ACCMODE) != O_RDONLY) return fs_striped_truncate(d, size);
    return d ? on_handle(d, FS_TRUNCATE, 0, 0, size) : REAL(ftruncate)(fd, size);
}
int ftruncate64(int fd, off_t size) ALIAS(ftruncate);

EXPORT int truncate(const char *path, off_t size) {
    struct route route;
    int served = fs_route_file(AT_FDCWD, path, &route);
    if (served < 0) return -1;
    if (!served) return REAL(truncate)(fs_past(&route, path), size);
    if (negative(size)) return -1;
    if (fs_config.servers > 1) {  // a striped file is cut by those who have it open
        int fd = fs_open(&route, O_WRONLY | O_CLOEXEC, 0);
        if (fd < 0) return -1;
        int result = ftruncate(fd, size), problem = errno;
        fs_close(fd);
        errno = problem;
        return result;
    }
    struct call c = {.request = {.op = FS_TRUNCATE, .size = (uint64_t)size}, .at = route.at, .path = route.path};
    return fs_answer(fs_do(&c));
}
int truncate64(const char *path, off_t size) ALIAS(truncate);

BY_FD(int, fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size),
      on_handle(d, FS_ALLOCATE, (uint32_t)mode, offset, size))
int fallocate64(int fd, int mode, off_t offset, off_t size) ALIAS(fallocate);

EXPORT int posix_fallocate(int fd, off_t offset, off_t size) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(posix_fallocate)(fd, offset, size);
    return on_handle(d, FS_ALLOCATE, 0, offset, size) < 0 ? errno : 0;
}
int posix_fallocate64(int fd, off_t offset, off_t size) ALIAS(posix_fallocate);

EXPORT int posix_fadvise(int fd, off_t offset, off_t size, int advice) {
    // A hint; nothing is cached on this side.
    return fs_get(fd) ? 0 : REAL(posix_fadvise)(fd, offset, size, advice);
}
int posix_fadvise64(int fd, off_t offset, off_t size, int advice) ALIAS(posix_fadvise);

EXPORT ssize_t readahead(int fd, off_t offset, size_t size) {
    return fs_get(fd) ? 0 : REAL(readahead)(fd, offset, size);
}

static int sync_now(struct description *d, uint32_t flags) {
    if (d->stripes) return fs_striped_sync(d, flags);
    struct call c = {.request = {.op = FS_FSYNC, .flags = flags}, .at = d};
    return fs_answer(fs_do(&c));
}

BY_FD(int, fsync, (int fd), (fd), sync_now(d, 0))

BY_FD(int, fdatasync, (int fd), (fd), sync_now(d, FS_DATA_ONLY))

BY_FD(int, syncfs, (int fd), (fd), sync_now(d, 0))

BY_FD(int, sync_file_range, (int fd, off_t offset, off_t size, unsigned flags), (fd, offset, size, flags),
      sync_now(d, FS_DATA_ONLY))

// ---- from one descriptor to another ----
// `*offset` is used and moved, or the descriptor's position where `offset` is NULL.
static ssize_t pass(int in, off_t *in_offset, int out, off_t *out_offset, size_t size) {
    const size_t most = 1 << 20;
    char *buffer = malloc(size < most ? (size ? size : 1) : most);
    size_t done = 0;
    if (!buffer) return fs_fail(ENOMEM);
    while (done < size) {
        size_t now = size - done < most ? size - done : most;
        ssize_t got = in_offset ? pread(in, buffer, now, *in_offset) : read(in, buffer, now);
        if (got <= 0) {
            if (got < 0 && done == 0) goto failed;
            break;
        }
        ssize_t put = out_offset ? pwrite(out, buffer, (size_t)got, *out_offset) : write(out, buffer, (size_t)got);
        if (put < got && !in_offset) lseek(in, (put < 0 ? 0 : put) - got, SEEK_CUR);  // the rest was not taken
        if (put < 0) {
            if (done == 0) goto failed;
            break;
        }
        if (in_offset) *in_offset += put;
        if (out_offset) *out_offset += put;
        done += (size_t)put;
        if (put < got) break;
    }
    free(buffer);
    return (ssize_t)done;
failed:;
    int problem = errno;
    free(buffer);
    errno = problem;
    return -1;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
    if (!fs_get(in) && !fs_get(out)) return REAL(sendfile)(out, in, offset, size);
    return pass(in, offset, out, NULL, size);
}
ssize_t sendfile64(int out, int in, off_t *offset, size_t size) ALIAS(sendfile);

// A copy within one file ends where the file does, not where it made it longer; and must not read what it has written.
static bool within(struct description *d, struct description *to, const off_t *from_offset, const off_t *to_offset,
                   size_t *size) {
    struct fs_attributes a;
    if (!d || !to || d->ino != to->ino || d->server != to->server) return true;
    off_t from = from_offset ? *from_offset : fs_seek(d, 0, SEEK_CUR), at = to_offset ? *to_offset : fs_seek(to, 0, SEEK_CUR);
    if (from < 0 || at < 0 || fs_attributes_at(d, NULL, true, &a) < 0) return true;  // copying will say why
    size_t there = (uint64_t)from < a.size ? a.size - (size_t)from : 0, apart = (size_t)(from > at ? from - at : at - from);
    if (*size > there) *size = there;
    return apart >= *size;
}

EXPORT ssize_t copy_file_range(int in, off_t *in_offset, int out, off_t *out_offset, size_t size, unsigned flags) {
    if (!fs_get(in) && !fs_get(out)) return REAL(copy_file_range)(in, in_offset, out, out_offset, size, flags);
    if (flags || !within(fs_get(in), fs_get(out), in_offset, out_offset, &size)) return fs_fail(EINVAL);
    return pass(in, in_offset, out, out_offset, size);
}

EXPORT ssize_t splice(int in, off_t *in_offset, int out, off_t *out_offset, size_t size, unsigned flags) {
    if (!fs_get(in) && !fs_get(out)) return REAL(splice)(in, in_offset, out, out_offset, size, flags);
    errno = EINVAL;  // what a file system without splice says; programs then read and write
    return -1;
}
