// Ways to the kernel that go past this library. On served files they fail with an errno that says so;
// most programs then take the ordinary way.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

// libaio: struct iocb has the descriptor at byte 20 (linux/aio_abi.h). Its functions return -errno.
struct iocb;
int io_submit(void *context, long n, struct iocb **list);
EXPORT int io_submit(void *context, long n, struct iocb **list) {
    for (long i = 0; fs_on() && i < n; i++)
        if (fs_get(*(int *)(void *)((char *)list[i] + 20))) return i > 0 ? (int)i : -EOPNOTSUPP;
    return REAL(io_submit) ? REAL(io_submit)(context, n, list) : -ENOSYS;
}

EXPORT int inotify_add_watch(int fd, const char *path, uint32_t mask) {
    struct route route;
    int served = fs_route(AT_FDCWD, path, &route);
    return served ? fs_fail(EOPNOTSUPP) : REAL(inotify_add_watch)(fd, path, mask);
}

EXPORT int fanotify_mark(int set, unsigned flags, uint64_t mask, int fd, const char *path) {
    struct route route;
    bool ours = path ? fs_route(fd, path, &route) != 0 : fs_get(fd) != NULL;
    return ours ? fs_fail(EOPNOTSUPP) : REAL(fanotify_mark)(set, flags, mask, fd, path);
}

EXPORT int name_to_handle_at(int fd, const char *path, struct file_handle *handle, int *mount, int flags) {
    struct route route;
    bool ours = fs_route(fd, path, &route) != 0 || (flags & AT_EMPTY_PATH && fs_get(fd));
    return ours ? fs_fail(EOPNOTSUPP) : REAL(name_to_handle_at)(fd, path, handle, mount, flags);
}

EXPORT int acct(const char *path) {
    struct route route;
    return fs_route(AT_FDCWD, path, &route) ? fs_fail(EOPNOTSUPP) : REAL(acct)(path);
}

// ---- sockets: a name below the prefix is none of the kernel's, and a served file is no socket ----
static bool served_name(const struct sockaddr *address, socklen_t size) {
    char path[sizeof(struct sockaddr_un) + 1] = {0};
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    if (!fs_on() || !address || size <= head || address->sa_family != AF_UNIX) return false;
    size_t length = size - head;
    memcpy(path, ((const struct sockaddr_un *)(const void *)address)->sun_path, length < sizeof path ? length : sizeof path - 1);
    struct route route;
    return *path && fs_route(AT_FDCWD, path, &route) != 0;
}

#define SOCKET(type, name, params, args)                           \
    EXPORT type name params {                                      \
        if (fs_get(fd)) return fs_fail(ENOTSOCK);                       \
        return REAL(name) args;                                    \
    }
#define WITH_NAME(type, name, params, args)                        \
    EXPORT type name params {                                      \
        if (fs_get(fd)) return fs_fail(ENOTSOCK);                       \
        if (served_name(to, length)) return fs_fail(EOPNOTSUPP);        \
        return REAL(name) args;                                    \
    }
WITH_NAME(int, bind, (int fd, const struct sockaddr *to, socklen_t length), (fd, to, length))
WITH_NAME(int, connect, (int fd, const struct sockaddr *to, socklen_t length), (fd, to, length))
WITH_NAME(ssize_t, sendto, (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length),
          (fd, data, size, flags, to, length))
SOCKET(ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))
SOCKET(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
SOCKET(ssize_t, recvfrom,
       (int fd, void *restrict data, size_t size, int flags, struct sockaddr *restrict from, socklen_t *restrict length),
       (fd, data, size, flags, from, length))
SOCKET(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
SOCKET(int, shutdown, (int fd, int how), (fd, how))
SOCKET(int, listen, (int fd, int most), (fd, most))
SOCKET(int, getsockname, (int fd, struct sockaddr *restrict name, socklen_t *restrict length), (fd, name, length))
SOCKET(int, getpeername, (int fd, struct sockaddr *restrict name, socklen_t *restrict length), (fd, name, length))
SOCKET(int, getsockopt, (int fd, int level, int option, void *restrict value, socklen_t *restrict length),
       (fd, level, option, value, length))
SOCKET(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
       (fd, level, option, value, length))

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (fs_get(fd)) return fs_fail(ENOTSOCK);
    if (message && served_name(message->msg_name, message->msg_namelen)) return fs_fail(EOPNOTSUPP);
    return REAL(sendmsg)(fd, message, flags);
}

// Raw calls by number: the ones that programs use where libc had no wrapper yet.
EXPORT long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    struct route route;
    if (fs_on()) switch (number) {
        case SYS_openat2:
            // ENOSYS makes programs take openat, which is served.
            if (fs_route((int)a[0], (const char *)a[1], &route)) return fs_fail(ENOSYS);
            break;
        case SYS_openat: return openat((int)a[0], (const char *)a[1], (int)a[2], (mode_t)a[3]);
        case SYS_close: return close((int)a[0]);
        case SYS_read: return read((int)a[0], (void *)a[1], (size_t)a[2]);
        case SYS_write: return write((int)a[0], (const void *)a[1], (size_t)a[2]);
        case SYS_pread64: return pread((int)a[0], (void *)a[1], (size_t)a[2], a[3]);
        case SYS_pwrite64: return pwrite((int)a[0], (const void *)a[1], (size_t)a[2], a[3]);
        case SYS_lseek: return lseek((int)a[0], a[1], (int)a[2]);
        case SYS_setuid: case SYS_setreuid: case SYS_setresuid: case SYS_setfsuid:
        case SYS_setgid: case SYS_setregid: case SYS_setresgid: case SYS_setfsgid: case SYS_setgroups: {
            long result = REAL(syscall)(number, a[0], a[1], a[2]);
            int problem = errno;
            fs_thread_changed();
            errno = problem;
            return result;
        }
        case SYS_statx:
            return statx((int)a[0], (const char *)a[1], (int)a[2], (unsigned)a[3], (struct statx *)a[4]);
        case SYS_renameat2:
            return renameat2((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]);
        case SYS_copy_file_range:
            return copy_file_range((int)a[0], (off_t *)a[1], (int)a[2], (off_t *)a[3], (size_t)a[4], (unsigned)a[5]);
        case SYS_faccessat2:
            return faccessat((int)a[0], (const char *)a[1], (int)a[2], (int)a[3]);
        case SYS_getdents64:
        case SYS_fallocate:
        case SYS_sync_file_range:
        case SYS_ioctl:
            if (fs_get((int)a[0])) return fs_fail(EOPNOTSUPP);
            break;
        default: break;
    }
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
