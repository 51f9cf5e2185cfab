// chmod, chown, times, extended attributes, umask.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "client.h"
#include "real.h"

// ---- umask: applied here, because the server has its own ----
static mode_t mask;
static pthread_once_t mask_known = PTHREAD_ONCE_INIT;

static void read_mask(void) {
    // umask() can only be asked by setting it; /proc tells without.
    char line[256];
    FILE *file = REAL(fopen)("/proc/self/status", "re");
    bool found = false;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "Umask:", 6) == 0) {
            mask = (mode_t)strtoul(line + 6, NULL, 8);
            found = true;
        }
    if (file) REAL(fclose)(file);
    if (!found) {
        mask = REAL(umask)(022);
        REAL(umask)(mask);
    }
}

mode_t fs_umask(void) {
    pthread_once(&mask_known, read_mask);
    return mask;
}

EXPORT mode_t umask(mode_t wanted) {
    pthread_once(&mask_known, read_mask);
    mask = wanted & 0777;
    return REAL(umask)(wanted);
}

// ---- attributes ----
static int change(struct description *at, const char *path, bool follow, struct fs_request request) {
    request.op = FS_SET_ATTRIBUTES;
    request.flags = follow ? 0 : FS_NO_FOLLOW;
    struct call c = {.request = request, .at = at, .path = path};
    return fs_answer(fs_do(&c));
}

// What a call with a directory descriptor, a path and AT_ flags means: 1 found, 0 not ours, -1 failed.
static int find(int fd, const char *path, int flags, struct route *route, const char **name) {
    struct description *d;
    if (path && path[0] == '\0' && flags & AT_EMPTY_PATH && (d = fs_get(fd))) {
        route->at = d;
        route->outside = false;
        *name = NULL;
        return 1;
    }
    *name = route->path;
    return (flags & AT_SYMLINK_NOFOLLOW ? fs_route : fs_route_file)(fd, path, route);
}

#define CHANGE(fd, path, flags, otherwise, ...)                                          \
    struct route route;                                                                  \
    const char *name;                                                                    \
    int served = find(fd, path, flags, &route, &name);                                   \
    if (served < 0) return -1;                                                           \
    if (!served) return otherwise;                                                       \
    return change(route.at, name, !((flags) & AT_SYMLINK_NOFOLLOW), (struct fs_request){__VA_ARGS__});

EXPORT int fchmodat(int fd, const char *path, mode_t mode, int flags) {
    CHANGE(fd, path, flags, REAL(fchmodat)(fd, fs_past(&route, path), mode, flags), .mask = FS_MODE, .mode = mode)
}
EXPORT int chmod(const char *path, mode_t mode) {
    CHANGE(AT_FDCWD, path, 0, REAL(chmod)(fs_past(&route, path), mode), .mask = FS_MODE, .mode = mode)
}
EXPORT int lchmod(const char *path, mode_t mode) {
    CHANGE(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, REAL(lchmod)(fs_past(&route, path), mode), .mask = FS_MODE,
           .mode = mode)
}
EXPORT int fchmod(int fd, mode_t mode) {
    CHANGE(fd, "", AT_EMPTY_PATH, REAL(fchmod)(fd, mode), .mask = FS_MODE, .mode = mode)
}

#define OWNER(uid, gid)                                                                            \
    .mask = ((uid) != (uid_t)-1 ? FS_UID : 0) | ((gid) != (gid_t)-1 ? FS_GID : 0), .uid = uid, .gid = gid

EXPORT int fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags) {
    CHANGE(fd, path, flags, REAL(fchownat)(fd, fs_past(&route, path), uid, gid, flags), OWNER(uid, gid))
}
EXPORT int chown(const char *path, uid_t uid, gid_t gid) {
    CHANGE(AT_FDCWD, path, 0, REAL(chown)(fs_past(&route, path), uid, gid), OWNER(uid, gid))
}
EXPORT int lchown(const char *path, uid_t uid, gid_t gid) {
    CHANGE(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, REAL(lchown)(fs_past(&route, path), uid, gid), OWNER(uid, gid))
}
EXPORT int fchown(int fd, uid_t uid, gid_t gid) {
    CHANGE(fd, "", AT_EMPTY_PATH, REAL(fchown)(fd, uid, gid), OWNER(uid, gid))
}

static struct fs_request times_request(const struct timespec times[2]) {
    struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    if (!times) times = now;
    return (struct fs_request){
        .mask = (times[0].tv_nsec != UTIME_OMIT ? FS_ATIME : 0) | (times[1].tv_nsec != UTIME_OMIT ? FS_MTIME : 0),
        .times = {times[0].tv_sec, times[0].tv_nsec, times[1].tv_sec, times[1].tv_nsec}};
}

static int set_times(int fd, const char *path, const struct timespec times[2], int flags, bool *ours) {
    struct route route;
    const char *name;
    int served = find(fd, path, flags, &route, &name);
    *ours = served != 0 || route.outside;
    if (!served && route.outside) return REAL(utimensat)(AT_FDCWD, route.path, times, flags);
    if (served <= 0) return -1;
    return change(route.at, name, !(flags & AT_SYMLINK_NOFOLLOW), times_request(times));
}

EXPORT int utimensat(int fd, const char *path, const struct timespec times[2], int flags) {
    bool ours;
    // Linux takes a NULL path for the descriptor itself, though the prototype does not say so.
    const char *volatile given = path;
    int result = given ? set_times(fd, path, times, flags, &ours) : set_times(fd, "", times, AT_EMPTY_PATH, &ours);
    return ours ? result : REAL(utimensat)(fd, path, times, flags);
}

EXPORT int futimens(int fd, const struct timespec times[2]) {
    bool ours;
    int result = set_times(fd, "", times, AT_EMPTY_PATH, &ours);
    return ours ? result : REAL(futimens)(fd, times);
}

static const struct timespec *from_timeval(const struct timeval tv[2], struct timespec out[2]) {
    if (!tv) return NULL;
    for (int i = 0; i < 2; i++) out[i] = (struct timespec){tv[i].tv_sec, tv[i].tv_usec * 1000};
    return out;
}

#define TIMEVALS(name, fd, path, flags, otherwise, ...)                                            \
    EXPORT int name(__VA_ARGS__) {                                                                 \
        bool ours;                                                                                 \
        struct timespec times[2];                                                                  \
        int result = set_times(fd, path, from_timeval(tv, times), flags, &ours);                   \
        return ours ? result : otherwise;                                                          \
    }
TIMEVALS(utimes, AT_FDCWD, path, 0, REAL(utimes)(path, tv), const char *path, const struct timeval tv[2])
TIMEVALS(lutimes, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, REAL(lutimes)(path, tv), const char *path,
         const struct timeval tv[2])
TIMEVALS(futimes, fd, "", AT_EMPTY_PATH, REAL(futimes)(fd, tv), int fd, const struct timeval tv[2])
TIMEVALS(futimesat, fd, path, 0, REAL(futimesat)(fd, path, tv), int fd, const char *path,
         const struct timeval tv[2])

EXPORT int utime(const char *path, const struct utimbuf *both) {
    bool ours;
    struct timespec times[2];
    if (both) times[0] = (struct timespec){both->actime, 0}, times[1] = (struct timespec){both->modtime, 0};
    int result = set_times(AT_FDCWD, path, both ? times : NULL, 0, &ours);
    return ours ? result : REAL(utime)(path, both);
}

// ---- extended attributes ----
static ssize_t xattr(uint32_t op, struct description *at, const char *path, bool follow, const char *key,
                     const void *value, void *out, size_t size, int flags) {
    struct call c = {.request = {.op = op, .flags = follow ? 0 : FS_NO_FOLLOW, .size = size, .mode = (uint32_t)flags},
                     .at = at, .path = path, .path2 = key, .payload = value, .payload_len = value ? size : 0,
                     .out = out, .out_len = out ? size : 0};
    if (value && size > FS_SLOT_BYTES / 2) return fs_fail(E2BIG);
    int64_t result = fs_do(&c);
    return fs_answer(result);
}

#define XATTR_PATH(name, follow, type, op, params, args, key, value, out, size, flags)         \
    EXPORT type name params {                                                                  \
        struct route route;                                                                    \
        int served = (follow ? fs_route_file : fs_route)(AT_FDCWD, path, &route);              \
        if (served < 0) return -1;                                                             \
        path = fs_past(&route, path);                                                          \
        if (!served) return REAL(name) args;                                                   \
        return (type)xattr(op, route.at, route.path, follow, key, value, out, size, flags);    \
    }
#define XATTR_FD(name, type, op, params, args, key, value, out, size, flags)                   \
    EXPORT type name params {                                                                  \
        struct description *d = fs_get(fd);                                                    \
        if (!d) return REAL(name) args;                                                        \
        return (type)xattr(op, d, NULL, true, key, value, out, size, flags);                   \
    }
#define GET_ARGS (const char *path, const char *key, void *out, size_t size)
XATTR_PATH(getxattr, true, ssize_t, FS_GET_XATTR, GET_ARGS, (path, key, out, size), key, NULL, out, size, 0)
XATTR_PATH(lgetxattr, false, ssize_t, FS_GET_XATTR, GET_ARGS, (path, key, out, size), key, NULL, out, size, 0)
XATTR_FD(fgetxattr, ssize_t, FS_GET_XATTR, (int fd, const char *key, void *out, size_t size),
         (fd, key, out, size), key, NULL, out, size, 0)
#define SET_ARGS (const char *path, const char *key, const void *value, size_t size, int flags)
XATTR_PATH(setxattr, true, int, FS_SET_XATTR, SET_ARGS, (path, key, value, size, flags), key, value, NULL, size, flags)
XATTR_PATH(lsetxattr, false, int, FS_SET_XATTR, SET_ARGS, (path, key, value, size, flags), key, value, NULL, size,
           flags)
XATTR_FD(fsetxattr, int, FS_SET_XATTR, (int fd, const char *key, const void *value, size_t size, int flags),
         (fd, key, value, size, flags), key, value, NULL, size, flags)
#define LIST_ARGS (const char *path, char *out, size_t size)
XATTR_PATH(listxattr, true, ssize_t, FS_LIST_XATTR, LIST_ARGS, (path, out, size), NULL, NULL, out, size, 0)
XATTR_PATH(llistxattr, false, ssize_t, FS_LIST_XATTR, LIST_ARGS, (path, out, size), NULL, NULL, out, size, 0)
XATTR_FD(flistxattr, ssize_t, FS_LIST_XATTR, (int fd, char *out, size_t size), (fd, out, size), NULL, NULL, out,
         size, 0)
#define REMOVE_ARGS (const char *path, const char *key)
XATTR_PATH(removexattr, true, int, FS_REMOVE_XATTR, REMOVE_ARGS, (path, key), key, NULL, NULL, 0, 0)
XATTR_PATH(lremovexattr, false, int, FS_REMOVE_XATTR, REMOVE_ARGS, (path, key), key, NULL, NULL, 0, 0)
XATTR_FD(fremovexattr, int, FS_REMOVE_XATTR, (int fd, const char *key), (fd, key), key, NULL, NULL, 0, 0)
