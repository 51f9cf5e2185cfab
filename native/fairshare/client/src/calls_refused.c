// Ways to the kernel that go past this library. On served files they fail with an errno that says so;
// most programs then take the ordinary way.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

static int no(int problem) {
    errno = problem;
    return -1;
}

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
    return served ? no(EOPNOTSUPP) : REAL(inotify_add_watch)(fd, path, mask);
}

EXPORT int name_to_handle_at(int fd, const char *path, struct file_handle *handle, int *mount, int flags) {
    struct route route;
    bool ours = fs_route(fd, path, &route) != 0 || (flags & AT_EMPTY_PATH && fs_get(fd));
    return ours ? no(EOPNOTSUPP) : REAL(name_to_handle_at)(fd, path, handle, mount, flags);
}

EXPORT int acct(const char *path) {
    struct route route;
    return fs_route(AT_FDCWD, path, &route) ? no(EOPNOTSUPP) : REAL(acct)(path);
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
            if (fs_route((int)a[0], (const char *)a[1], &route)) return no(ENOSYS);
            break;
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
            if (fs_get((int)a[0])) return no(EOPNOTSUPP);
            break;
        default: break;
    }
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
