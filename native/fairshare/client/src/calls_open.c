// open, creat, close and their kin.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "real.h"
#include "stripe.h"

static bool locks_used;

void fs_locks_used(void) { locks_used = true; }

// The path from the root of what `route` names, for opening it again; NULL where that is not known.
static char *whole_path(const struct route *route, char *out) {
    const char *base = route->at ? route->at->path : "";
    if (!base) return NULL;
    const char *between = route->at && *route->path ? "/" : "";
    int n = snprintf(out, PATH_MAX, "%s%s%s", base, between, route->path);
    if (n >= PATH_MAX) return NULL;
    // A folder's own name, not "/.": the root of several servers is known by it.
    while (n > 1 && out[n - 1] == '.' && out[n - 2] == '/') n -= n > 2 ? 2 : 1;
    out[n] = '\0';
    return out;
}

// A path with ".." in it says where a folder is only as long as what it goes through is there.
static void name_anew(struct description *d) {
    char now[PATH_MAX];
    struct call c = {.request.op = FS_RESOLVE, .at = d, .out = now, .out_len = sizeof now - 1};
    int64_t length = fs_do(&c);
    free(d->path);
    d->path = NULL;
    if (length <= 0) return;
    now[length] = '\0';
    d->path = strdup(now);
}

// What O_TRUNC asks for, of a striped file; also where it is opened for reading.
static int empty(struct route *route, struct description *d) {
    if ((d->flags & O_ACCMODE) != O_RDONLY) return fs_striped_truncate(d, 0);
    int fd = fs_open(route, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = fs_striped_truncate(fs_get(fd), 0), problem = errno;
    fs_close(fd);
    errno = problem;
    return result;
}

int fs_open(struct route *route, int flags, mode_t mode) {
    struct {
        struct fs_attributes a;
        struct fs_grant grant;
    } found;
    char path[PATH_MAX];
    uint64_t servers[MOST_SERVERS];
    int server = route->at ? route->at->server : fs_server_of(route->path);
    bool stripe = flags & O_CREAT && fs_config.servers > 1 && fs_stripe_size(server) > 0;
    if (stripe && !fs_stripe_servers(servers)) {
        errno = EIO;  // a new file lies on all servers, and one of them is down
        return -1;
    }
    struct call c = {.request = {.op = FS_OPEN, .flags = (uint32_t)(flags & ~O_CLOEXEC),
                                 .mode = mode & 07777 & ~fs_umask()},
                     .at = route->at, .path = route->path, .out = &found, .out_len = sizeof found, .descriptor = -1};
    if (stripe) {
        c.payload = servers;
        c.payload_len = c.request.size = (size_t)fs_config.servers * sizeof *servers;
    }
    int64_t result = fs_do(&c);
    if (result < 0) return fs_answer(result);
    struct description *d = fs_new_description(server, c.reply.value, flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC),
                                               (found.a.mode & S_IFMT) == S_IFDIR, whole_path(route, path));
    int fd = c.descriptor;
    if (!d) {
        REAL(close)(fd);
        errno = ENOMEM;
        return -1;
    }
    d->ino = found.a.ino;
    if (d->directory && d->path && fs_goes_up(d->path)) name_anew(d);
    bool striped = c.reply.data_len >= sizeof found;
    int problem = striped && fs_attach(d, &found.grant) < 0 ? errno : 0;
    if (!problem && striped && flags & O_TRUNC && found.a.size > 0 && empty(route, d) < 0) problem = errno;
    if (problem) {
        fs_drop(d);
        REAL(close)(fd);
        errno = problem;
        return -1;
    }
    // It came close-on-exec; most are not.
    if (!(flags & O_CLOEXEC)) REAL(fcntl)(fd, F_SETFD, 0);
    if (fs_install(fd, d) < 0) {
        REAL(close)(fd);
        fs_drop(d);
        errno = EMFILE;
        return -1;
    }
    return fd;
}

static int open_from(int dirfd, const char *path, int flags, mode_t mode) {
    struct route route;
    int served = fs_route_file(dirfd, path, &route);
    if (served > 0 && !*route.path && (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return fs_fail(EEXIST);
    if (served) return served < 0 ? -1 : fs_open(&route, flags, mode);
    return REAL(openat)(dirfd, fs_past(&route, path), flags, mode);
}

#define WITH_MODE(flags, mode)                              \
    mode_t mode = 0;                                        \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list list;                                       \
        va_start(list, flags);                              \
        mode = va_arg(list, mode_t);                        \
        va_end(list);                                       \
    }

EXPORT int open(const char *path, int flags, ...) {
    WITH_MODE(flags, mode)
    return open_from(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) ALIAS(open);

EXPORT int openat(int dirfd, const char *path, int flags, ...) {
    WITH_MODE(flags, mode)
    return open_from(dirfd, path, flags, mode);
}
int openat64(int dirfd, const char *path, int flags, ...) ALIAS(openat);

// What fortified programs call when they give no mode.
int __open_2(const char *path, int flags);
EXPORT int __open_2(const char *path, int flags) { return open(path, flags, 0); }
int __open64_2(const char *path, int flags) ALIAS(__open_2);
int __openat_2(int dirfd, const char *path, int flags);
EXPORT int __openat_2(int dirfd, const char *path, int flags) { return openat(dirfd, path, flags, 0); }
int __openat64_2(int dirfd, const char *path, int flags) ALIAS(__openat_2);

EXPORT int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) ALIAS(creat);

int fs_close(int fd) {
    struct description *d = fs_uninstall(fd);
    if (d && ((locks_used && !d->directory) || (fs_remote(d->server) && d->references == 1))) {
        // Closing any descriptor of a file ends this process's record locks on it; and a remote server
        // learns only so that a file is closed.
        struct call c = {.request = {.op = FS_CLOSE, .mode = d->references == 1 && !d->shared}, .at = d};
        fs_do(&c);
    }
    if (d) fs_drop(d);
    return REAL(close)(fd);
}

EXPORT int close(int fd) {
    if (fs_get(fd)) return fs_close(fd);
    if (fs_on() && fs_internal(fd)) {
        errno = EBADF;  // a program that closes all that may be open does not know of ours
        return -1;
    }
    return REAL(close)(fd);
}

EXPORT int close_range(unsigned first, unsigned last, int flags) {
    if (!fs_on()) return (int)syscall(SYS_close_range, first, last, flags);
    if (first > last) return fs_fail(EINVAL);
    for (int fd = (int)first; !(flags & CLOSE_RANGE_CLOEXEC) && (unsigned)fd <= last && fd < fs_max_descriptors(); fd++) {
        struct description *d = fs_uninstall(fd);
        if (d) fs_drop(d);
    }
    // In stretches around our own descriptors.
    for (unsigned fd = first; fd <= last && fd < (unsigned)fs_max_descriptors(); fd++) {
        if (!fs_internal((int)fd)) continue;
        if (fd > first && syscall(SYS_close_range, first, fd - 1, flags) < 0) return -1;
        first = fd + 1;
    }
    return first > last ? 0 : (int)syscall(SYS_close_range, first, last, flags);
}

EXPORT void closefrom(int first) { close_range((unsigned)(first < 0 ? 0 : first), ~0u, 0); }
