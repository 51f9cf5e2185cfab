// Descriptors themselves: dup, fcntl with its locks, flock, ioctl.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

EXPORT int dup(int fd) {
    int copy = REAL(dup)(fd);
    if (copy >= 0 && fs_on()) fs_duplicate(fd, copy);
    return copy;
}

EXPORT int dup2(int fd, int to) {
    if (fs_on() && fd != to) fs_move_aside(to);
    int copy = REAL(dup2)(fd, to);
    if (copy >= 0 && fs_on() && fd != to) fs_duplicate(fd, to);
    return copy;
}

EXPORT int dup3(int fd, int to, int flags) {
    if (fs_on()) fs_move_aside(to);
    int copy = REAL(dup3)(fd, to, flags);
    if (copy >= 0 && fs_on()) fs_duplicate(fd, to);
    return copy;
}

// ---- locks. The server never waits; who wants to wait asks again, less and less often ----
static int64_t wait_for(struct call *c, bool wait) {
    long pause = 200000;  // nanoseconds
    int64_t result;
    fs_pin(c->at, true);
    while ((result = fs_do(c)) == -EAGAIN && wait) {
        struct timespec t = {.tv_nsec = pause};
        if (nanosleep(&t, NULL) < 0) {
            result = -EINTR;
            break;
        }
        if (pause < 20000000) pause *= 2;
    }
    fs_pin(c->at, false);
    return result;
}

static int record_lock(struct description *d, int command, struct flock *lock) {
    bool set = command != F_GETLK;
    off_t base = 0, start, length = lock->l_len;
    if (lock->l_whence == SEEK_CUR) base = fs_seek(d, 0, SEEK_CUR);
    if (lock->l_whence == SEEK_END) {
        struct fs_attributes a;
        base = fs_attributes_at(d, NULL, true, &a) < 0 ? -1 : (off_t)a.size;
    }
    if (base < 0) return -1;
    if (__builtin_add_overflow(base, lock->l_start, &start)) return fs_fail(EOVERFLOW);
    if (length < 0) start += length, length = -length;  // up to the start, says POSIX
    if (start < 0 || lock->l_whence > SEEK_END || lock->l_whence < 0) return fs_fail(EINVAL);
    fs_locks_used();
    uint64_t other = 0;
    struct call c = {.request = {.op = FS_LOCK, .flags = set ? FS_SET : 0, .offset = start,
                                 .size = (uint64_t)length, .mode = (uint32_t)lock->l_type},
                     .at = d, .out = &other, .out_len = sizeof other};
    int64_t result = wait_for(&c, command == F_SETLKW);
    if (result < 0 || set) return fs_answer(result);
    lock->l_type = (short)result;
    if (result != F_UNLCK) {
        lock->l_whence = SEEK_SET;
        lock->l_start = (off_t)c.reply.value;
        lock->l_len = (off_t)other;
        lock->l_pid = -1;  // of a process that may be on another machine
    }
    return 0;
}

static int ours(struct description *d, int fd, int command, void *argument) {
    int number = (int)(intptr_t)argument;
    switch (command) {
        case F_DUPFD:
        case F_DUPFD_CLOEXEC: {
            int copy = REAL(fcntl)(fd, command, number);
            if (copy >= 0) fs_duplicate(fd, copy);
            return copy;
        }
        case F_GETFD: return REAL(fcntl)(fd, command);
        case F_SETFD: return REAL(fcntl)(fd, command, number);
        case F_GETFL: return d->flags;
        case F_SETFL: {
            const int changeable = O_APPEND | O_NONBLOCK | O_NOATIME;
            struct call c = {.request = {.op = FS_SET_FLAGS, .flags = (uint32_t)number}, .at = d};
            int64_t result = fs_do(&c);
            if (result < 0) return fs_answer(result);
            d->flags = (d->flags & ~changeable) | (number & changeable);
            return 0;
        }
        case F_GETLK:
        case F_SETLK:
        case F_SETLKW: return record_lock(d, command, argument);
        default: errno = EINVAL; return -1;
    }
}

static int control(int fd, int command, void *argument) {
    struct description *d = fs_get(fd);
    return d ? ours(d, fd, command, argument) : REAL(fcntl)(fd, command, argument);
}

EXPORT int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return control(fd, command, argument);
}
int fcntl64(int fd, int command, ...) ALIAS(fcntl);

EXPORT int flock(int fd, int operation) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(flock)(fd, operation);
    fs_locks_used();  // so that closing it is told to the server, and the lock is free when close returns
    struct call c = {.request = {.op = FS_FLOCK, .mode = (uint32_t)(operation & ~LOCK_NB)}, .at = d};
    int64_t result = wait_for(&c, !(operation & LOCK_NB));
    return fs_answer(result == -EAGAIN ? -EWOULDBLOCK : result);
}

EXPORT int lockf(int fd, int command, off_t length) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(lockf)(fd, command, length);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = length};
    switch (command) {
        case F_LOCK: return record_lock(d, F_SETLKW, &lock);
        case F_TLOCK: return record_lock(d, F_SETLK, &lock);
        case F_ULOCK: lock.l_type = F_UNLCK; return record_lock(d, F_SETLK, &lock);
        case F_TEST:
            if (record_lock(d, F_GETLK, &lock) < 0) return -1;
            if (lock.l_type == F_UNLCK) return 0;
            errno = EACCES;
            return -1;
        default: errno = EINVAL; return -1;
    }
}
int lockf64(int fd, int command, off_t length) ALIAS(lockf);

EXPORT int ioctl(int fd, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    struct description *d = fs_get(fd);
    if (!d || request == FIOCLEX || request == FIONCLEX) return REAL(ioctl)(fd, request, argument);
    if (request == FIONREAD && !d->directory) {
        struct fs_attributes a;
        if (fs_attributes_at(d, NULL, true, &a) < 0) return -1;
        off_t at = fs_seek(d, 0, SEEK_CUR);
        off_t left = (off_t)a.size > at ? (off_t)a.size - at : 0;
        *(int *)argument = left > INT_MAX ? INT_MAX : (int)left;
        return 0;
    }
    errno = request == FIONBIO ? EINVAL : ENOTTY;
    return -1;
}
