// stat in all its forms, access, statfs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

// Device numbers that no file system of this machine has, so that tools see a mount of its own; of each server
// another one, since files of two servers may have the same number, and tools take those for one file.
#define DEVICE_MAJOR 0
#define DEVICE_MINOR(server) (0xfa15u + (unsigned)(server))

static void to_stat(const struct fs_attributes *a, int server, struct stat *st) {
    memset(st, 0, sizeof *st);
    st->st_dev = makedev(DEVICE_MAJOR, DEVICE_MINOR(server));
    st->st_ino = a->ino;
    st->st_mode = a->mode;
    st->st_nlink = a->nlink;
    st->st_uid = a->uid;
    st->st_gid = a->gid;
    st->st_rdev = a->rdev;
    st->st_size = (off_t)a->size;
    st->st_blksize = a->blksize < 65536 ? 65536 : a->blksize;  // worth a request
    st->st_blocks = (blkcnt_t)a->blocks;
    st->st_atim = (struct timespec){a->times[0], a->times[1]};
    st->st_mtim = (struct timespec){a->times[2], a->times[3]};
    st->st_ctim = (struct timespec){a->times[4], a->times[5]};
}

// 1: answered, 0: not ours (then `*path` is what the kernel is to be asked), -1: failed.
static int look(int fd, const char **given, int flags, struct fs_attributes *a, int *server, struct route *route) {
    const char *path = *given;
    if (path && path[0] == '\0' && flags & AT_EMPTY_PATH && fd != AT_FDCWD) {
        struct description *d = fs_get(fd);
        if (!d) return 0;
        *server = d->server;
        return fs_attributes_at(d, NULL, true, a) < 0 ? -1 : 1;
    }
    int served = (flags & AT_SYMLINK_NOFOLLOW ? fs_route : fs_route_file)(fd, path, route);
    *given = fs_past(route, path);
    if (served <= 0) return served;
    *server = route->at ? route->at->server : fs_server_of(route->path);
    return fs_attributes_at(route->at, route->path, !(flags & AT_SYMLINK_NOFOLLOW), a) < 0 ? -1 : 1;
}

static int look_stat(int fd, const char **path, int flags, struct stat *st, struct route *route) {
    struct fs_attributes a;
    int server = 0, answered = fs_on() ? look(fd, path, flags, &a, &server, route) : 0;
    if (answered > 0) to_stat(&a, server, st);
    return answered;
}

// struct stat and struct stat64 are the same on the 64-bit machines that this is built for.
#define STAT(name, call, fd, path, flags, ...)                         \
    EXPORT int name(__VA_ARGS__) {                                     \
        struct route route;                                            \
        const char *past = path;                                       \
        int answered = look_stat(fd, &past, flags, st, &route);        \
        return answered ? (answered > 0 ? 0 : -1) : call;              \
    }

STAT(stat, REAL(stat)(past, st), AT_FDCWD, path, 0, const char *path, struct stat *st)
STAT(lstat, REAL(lstat)(past, st), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, const char *path, struct stat *st)
STAT(fstat, REAL(fstat)(fd, st), fd, "", AT_EMPTY_PATH, int fd, struct stat *st)
STAT(fstatat, REAL(fstatat)(fd, past, st, flags), fd, path, flags, int fd, const char *path, struct stat *st,
     int flags)

#define SAME_AS(name, of, ...) int name(__VA_ARGS__) ALIAS(of)
#undef stat64
#undef lstat64
#undef fstat64
#undef fstatat64
struct stat64;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
SAME_AS(stat64, stat, const char *, struct stat64 *);
SAME_AS(lstat64, lstat, const char *, struct stat64 *);
SAME_AS(fstat64, fstat, int, struct stat64 *);
SAME_AS(fstatat64, fstatat, int, const char *, struct stat64 *, int);
#pragma GCC diagnostic pop

// What programs built before glibc 2.33 call.
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int fd, const char *path, struct stat *st, int flags);
EXPORT int __xstat(int version, const char *path, struct stat *st) { return (void)version, stat(path, st); }
EXPORT int __lxstat(int version, const char *path, struct stat *st) { return (void)version, lstat(path, st); }
EXPORT int __fxstat(int version, int fd, struct stat *st) { return (void)version, fstat(fd, st); }
EXPORT int __fxstatat(int version, int fd, const char *path, struct stat *st, int flags) {
    return (void)version, fstatat(fd, path, st, flags);
}
int __xstat64(int version, const char *path, struct stat *st) ALIAS(__xstat);
int __lxstat64(int version, const char *path, struct stat *st) ALIAS(__lxstat);
int __fxstat64(int version, int fd, struct stat *st) ALIAS(__fxstat);
int __fxstatat64(int version, int fd, const char *path, struct stat *st, int flags) ALIAS(__fxstatat);

static struct statx_timestamp stamp(const int64_t *time) {
    return (struct statx_timestamp){.tv_sec = time[0], .tv_nsec = (uint32_t)time[1]};
}

EXPORT int statx(int fd, const char *path, int flags, unsigned mask, struct statx *out) {
    struct fs_attributes a;
    struct route route;
    int server = 0, answered = fs_on() ? look(fd, &path, flags, &a, &server, &route) : 0;
    if (!answered) return REAL(statx)(fd, path, flags, mask, out);
    if (answered < 0) return -1;
    memset(out, 0, sizeof *out);
    out->stx_mask = STATX_BASIC_STATS | (a.times[6] ? STATX_BTIME : 0);
    out->stx_blksize = a.blksize < 65536 ? 65536 : a.blksize;
    out->stx_nlink = (uint32_t)a.nlink;
    out->stx_uid = a.uid;
    out->stx_gid = a.gid;
    out->stx_mode = (uint16_t)a.mode;
    out->stx_ino = a.ino;
    out->stx_size = a.size;
    out->stx_blocks = a.blocks;
    out->stx_atime = stamp(a.times);
    out->stx_mtime = stamp(a.times + 2);
    out->stx_ctime = stamp(a.times + 4);
    out->stx_btime = stamp(a.times + 6);
    out->stx_dev_major = DEVICE_MAJOR;
    out->stx_dev_minor = DEVICE_MINOR(server);
    out->stx_rdev_major = major(a.rdev);
    out->stx_rdev_minor = minor(a.rdev);
    return 0;
}

EXPORT int faccessat(int fd, const char *path, int mode, int flags) {
    struct route route;
    int served = fs_route_file(fd, path, &route);
    if (served < 0) return -1;
    if (!served) return REAL(faccessat)(fd, fs_past(&route, path), mode, flags);
    struct call c = {.request = {.op = FS_ACCESS, .mode = (uint32_t)mode,
                                 .flags = flags & AT_SYMLINK_NOFOLLOW ? FS_NO_FOLLOW : 0},
                     .at = route.at, .path = route.path};
    return fs_answer(fs_do(&c));
}

EXPORT int access(const char *path, int mode) {
    struct route route;
    int served = fs_route_file(AT_FDCWD, path, &route);
    return served ? faccessat(AT_FDCWD, path, mode, 0) : REAL(access)(fs_past(&route, path), mode);
}

EXPORT int eaccess(const char *path, int mode) {
    struct route route;
    int served = fs_route(AT_FDCWD, path, &route);
    return served ? faccessat(AT_FDCWD, path, mode, 0) : REAL(eaccess)(fs_past(&route, path), mode);
}
int euidaccess(const char *path, int mode) ALIAS(eaccess);

// ---- file systems ----
static int space(struct description *at, const char *path, struct fs_statfs *space) {
    struct fs_attributes a;
    if (path && fs_attributes_at(at, path, true, &a) < 0) return -1;  // the path has to exist
    memset(space, 0, sizeof *space);
    for (int server = 0; server < fs_config.servers; server++) {  // together, in the first one's blocks
        struct fs_statfs one;
        struct call c = {.request.op = FS_STATFS, .server = server, .out = &one, .out_len = sizeof one};
        int64_t result = fs_do(&c);
        if (result < 0) return fs_answer(result);
        if (server == 0) space->bsize = one.bsize, space->namelen = one.namelen;
        double blocks = space->bsize ? (double)one.bsize / (double)space->bsize : 1;
        space->blocks += (uint64_t)((double)one.blocks * blocks);
        space->bfree += (uint64_t)((double)one.bfree * blocks);
        space->bavail += (uint64_t)((double)one.bavail * blocks);
        space->files += one.files;
        space->ffree += one.ffree;
    }
    return 0;
}

static void to_statfs(const struct fs_statfs *from, struct statfs *to) {
    memset(to, 0, sizeof *to);
    to->f_type = 0x46535231;  // "FSR1"
    to->f_bsize = to->f_frsize = (long)from->bsize;
    to->f_blocks = from->blocks;
    to->f_bfree = from->bfree;
    to->f_bavail = from->bavail;
    to->f_files = from->files;
    to->f_ffree = from->ffree;
    to->f_namelen = (long)from->namelen;
}

static void to_statvfs(const struct fs_statfs *from, struct statvfs *to) {
    memset(to, 0, sizeof *to);
    to->f_bsize = to->f_frsize = from->bsize;
    to->f_blocks = from->blocks;
    to->f_bfree = from->bfree;
    to->f_bavail = from->bavail;
    to->f_files = from->files;
    to->f_ffree = to->f_favail = from->ffree;
    to->f_namemax = from->namelen;
}

#define SPACE_OF_PATH(name, type, convert)                            \
    EXPORT int name(const char *path, struct type *out) {             \
        struct route route;                                           \
        struct fs_statfs found;                                       \
        int served = fs_route_file(AT_FDCWD, path, &route);           \
        if (served < 0) return -1;                                    \
        if (!served) return REAL(name)(fs_past(&route, path), out);                    \
        if (space(route.at, route.path, &found) < 0) return -1;       \
        convert(&found, out);                                         \
        return 0;                                                     \
    }
#define SPACE_OF_FD(name, type, convert)                              \
    EXPORT int name(int fd, struct type *out) {                       \
        struct fs_statfs found;                                       \
        if (!fs_get(fd)) return REAL(name)(fd, out);                  \
        if (space(NULL, NULL, &found) < 0) return -1;                 \
        convert(&found, out);                                         \
        return 0;                                                     \
    }
SPACE_OF_PATH(statfs, statfs, to_statfs)
SPACE_OF_FD(fstatfs, statfs, to_statfs)
SPACE_OF_PATH(statvfs, statvfs, to_statvfs)
SPACE_OF_FD(fstatvfs, statvfs, to_statvfs)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
struct statfs64;
struct statvfs64;
SAME_AS(statfs64, statfs, const char *, struct statfs64 *);
SAME_AS(fstatfs64, fstatfs, int, struct statfs64 *);
SAME_AS(statvfs64, statvfs, const char *, struct statvfs64 *);
SAME_AS(fstatvfs64, fstatvfs, int, struct statvfs64 *);
#pragma GCC diagnostic pop
