// Names: making, removing, renaming, linking.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "real.h"
#include "stripe.h"

// The server of a call that took a name away; the objects of a striped file that had no other go too.
static int answer_name(struct call *c, struct fs_grant *grant) {
    c->out = grant;
    c->out_len = sizeof *grant;
    int64_t result = fs_do(c);
    int home = c->at ? c->at->server : fs_server_of(c->path);
    if (result == 0 && c->reply.value == 1 && c->reply.data_len == sizeof *grant) fs_remove_objects(home, grant);
    return fs_answer(result);
}

// Route one path; answer -1 where that fails, and the ordinary call where it is not ours.
#define ROUTE(fd, path, route, otherwise)              \
    struct route route;                                \
    {                                                  \
        int served = fs_route(fd, path, &route);       \
        if (served < 0) return -1;                     \
        path = fs_past(&route, path);                  \
        if (!served) return otherwise;                 \
    }

EXPORT int mkdirat(int fd, const char *path, mode_t mode) {
    ROUTE(fd, path, route, REAL(mkdirat)(fd, path, mode))
    struct call c = {.request = {.op = FS_MAKE_DIRECTORY, .mode = mode & 07777 & ~fs_umask()},
                     .at = route.at, .path = route.path};
    return fs_answer(fs_do(&c));
}

EXPORT int mkdir(const char *path, mode_t mode) {
    ROUTE(AT_FDCWD, path, route, REAL(mkdir)(path, mode))
    return mkdirat(AT_FDCWD, path, mode);
}

EXPORT int unlinkat(int fd, const char *path, int flags) {
    ROUTE(fd, path, route, REAL(unlinkat)(fd, path, flags))
    struct call c = {.request = {.op = FS_UNLINK, .flags = (uint32_t)flags}, .at = route.at, .path = route.path};
    struct fs_grant grant;
    return answer_name(&c, &grant);
}

EXPORT int unlink(const char *path) {
    ROUTE(AT_FDCWD, path, route, REAL(unlink)(path))
    return unlinkat(AT_FDCWD, path, 0);
}

EXPORT int rmdir(const char *path) {
    ROUTE(AT_FDCWD, path, route, REAL(rmdir)(path))
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

EXPORT int remove(const char *path) {
    ROUTE(AT_FDCWD, path, route, REAL(remove)(path))
    int result = unlinkat(AT_FDCWD, path, 0);
    return result < 0 && errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

// The prototypes say that no path is NULL; the kernel, which is asked otherwise, answers EFAULT.
static bool absent(const char *path) {
    const char *volatile given = path;
    return !given;
}

// Two names: where they lie, and what the kernel is asked for where they are not ours.
struct pair {
    struct route a, b;
    const char *from, *to;
    bool ours;
};

// Both names served, or neither; a name cannot move between file systems.
static int both(uint32_t op, int fd, const char *from, int fd2, const char *to, unsigned flags, struct pair *p) {
    int first = fs_route(fd, from, &p->a), second = fs_route(fd2, to, &p->b);
    p->ours = first != 0 || second != 0;
    p->from = fs_past(&p->a, from);
    p->to = fs_past(&p->b, to);
    if (!p->ours) return 0;
    if (first < 0 || second < 0) return -1;
    if (first != second) {
        errno = absent(from) || absent(to) ? EFAULT : EXDEV;
        return -1;
    }
    struct call c = {.request = {.op = op, .flags = flags}, .at = p->a.at, .path = p->a.path, .at2 = p->b.at,
                     .path2 = p->b.path};
    struct fs_grant grant;
    return answer_name(&c, &grant);
}

EXPORT int renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags) {
    struct pair p;
    int result = both(FS_RENAME, fd, from, fd2, to, flags, &p);
    return p.ours ? result : REAL(renameat2)(fd, p.from, fd2, p.to, flags);
}

EXPORT int renameat(int fd, const char *from, int fd2, const char *to) {
    struct pair p;
    int result = both(FS_RENAME, fd, from, fd2, to, 0, &p);
    return p.ours ? result : REAL(renameat)(fd, p.from, fd2, p.to);
}

EXPORT int rename(const char *from, const char *to) {
    struct pair p;
    int result = both(FS_RENAME, AT_FDCWD, from, AT_FDCWD, to, 0, &p);
    return p.ours ? result : REAL(rename)(p.from, p.to);
}

EXPORT int linkat(int fd, const char *from, int fd2, const char *to, int flags) {
    struct pair p;
    int result = both(FS_LINK, fd, from, fd2, to, (unsigned)flags, &p);
    return p.ours ? result : REAL(linkat)(fd, p.from, fd2, p.to, flags);
}

EXPORT int link(const char *from, const char *to) {
    struct pair p;
    int result = both(FS_LINK, AT_FDCWD, from, AT_FDCWD, to, 0, &p);
    return p.ours ? result : REAL(link)(p.from, p.to);
}

EXPORT int symlinkat(const char *text, int fd, const char *path) {
    ROUTE(fd, path, route, REAL(symlinkat)(text, fd, path))
    char kept[PATH_MAX];
    if (absent(text)) return fs_fail(EFAULT);
    if (!*text) return fs_fail(ENOENT);
    if (fs_link_text(text, kept, sizeof kept) < 0) return -1;
    struct call c = {.request.op = FS_SYMLINK, .at = route.at, .path = route.path, .path2 = kept};
    return fs_answer(fs_do(&c));
}

EXPORT int symlink(const char *text, const char *path) {
    ROUTE(AT_FDCWD, path, route, REAL(symlink)(text, path))
    return symlinkat(text, AT_FDCWD, path);
}

// What /proc/self/fd/N says of a served file.
static ssize_t link_of_number(struct description *d, char *buffer, size_t size) {
    char found[PATH_MAX], whole[2 * PATH_MAX];
    struct call c = {.request.op = FS_RESOLVE, .at = d, .out = found, .out_len = sizeof found - 1};
    int64_t length = fs_do(&c);
    if (length < 0) return fs_answer(length);
    found[length] = '\0';
    if (fs_absolute(found, whole, sizeof whole) < 0) return -1;
    size_t text = strlen(whole);
    if (text < size) size = text;
    memcpy(buffer, whole, size);
    return (ssize_t)size;
}

EXPORT ssize_t readlinkat(int fd, const char *restrict path, char *restrict buffer, size_t size) {
    struct description *d = fs_by_number(path);
    if (d && strncmp(path, "/dev/st", 7) != 0) return link_of_number(d, buffer, size);
    ROUTE(fd, path, route, REAL(readlinkat)(fd, path, buffer, size))
    char kept[PATH_MAX], shown[2 * PATH_MAX];
    struct call c = {.request.op = FS_READLINK, .at = route.at, .path = route.path, .out = kept,
                     .out_len = sizeof kept - 1};
    int64_t length = fs_do(&c);
    if (length < 0) return fs_answer(length);
    kept[length] = '\0';
    fs_link_shown(kept, shown, sizeof shown);
    size_t whole = strlen(shown);
    if (whole < size) size = whole;
    memcpy(buffer, shown, size);
    return (ssize_t)size;
}

EXPORT ssize_t readlink(const char *restrict path, char *restrict buffer, size_t size) {
    return readlinkat(AT_FDCWD, path, buffer, size);
}

ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
EXPORT ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room) {
    if (size > room) abort();
    return readlink(path, buffer, size);
}
ssize_t __readlinkat_chk(int fd, const char *path, char *buffer, size_t size, size_t room);
EXPORT ssize_t __readlinkat_chk(int fd, const char *path, char *buffer, size_t size, size_t room) {
    if (size > room) abort();
    return readlinkat(fd, path, buffer, size);
}

EXPORT char *realpath(const char *restrict path, char *restrict out) {
    struct route route;
    int served = path ? fs_route_file(AT_FDCWD, path, &route) : 0;
    if (served < 0) return NULL;
    if (!served) return REAL(realpath)(path ? fs_past(&route, path) : path, out);
    char found[PATH_MAX], whole[PATH_MAX];
    struct call c = {.request.op = FS_RESOLVE, .at = route.at, .path = route.path, .out = found,
                     .out_len = sizeof found - 1};
    int64_t length = fs_do(&c);
    if (length < 0) {
        errno = (int)-length;
        return NULL;
    }
    found[length] = '\0';
    if (fs_absolute(found, whole, sizeof whole) < 0) return NULL;
    return out ? strcpy(out, whole) : strdup(whole);
}

EXPORT char *canonicalize_file_name(const char *path) { return realpath(path, NULL); }

char *__realpath_chk(const char *path, char *out, size_t room);
EXPORT char *__realpath_chk(const char *path, char *out, size_t room) {
    if (room < PATH_MAX) abort();
    return realpath(path, out);
}

// Regular files are made as open makes them: they may be striped. Others are names alone, which cannot be opened
// from here.
EXPORT int mknodat(int fd, const char *path, mode_t mode, dev_t device) {
    ROUTE(fd, path, route, REAL(mknodat)(fd, path, mode, device))
    if ((mode & S_IFMT) != S_IFREG && (mode & S_IFMT) != 0) {
        struct call c = {.request = {.op = FS_MAKE_NODE, .mode = mode & ~fs_umask(), .offset = (int64_t)device},
                         .at = route.at, .path = route.path};
        return fs_answer(fs_do(&c));
    }
    int made = fs_open(&route, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode & 07777);
    return made < 0 ? -1 : fs_close(made);
}

EXPORT int mknod(const char *path, mode_t mode, dev_t device) {
    ROUTE(AT_FDCWD, path, route, REAL(mknod)(path, mode, device))
    return mknodat(AT_FDCWD, path, mode, device);
}

EXPORT int mkfifoat(int fd, const char *path, mode_t mode) {
    ROUTE(fd, path, route, REAL(mkfifoat)(fd, path, mode))
    return mknodat(fd, path, (mode & 07777) | S_IFIFO, 0);
}

EXPORT int mkfifo(const char *path, mode_t mode) {
    ROUTE(AT_FDCWD, path, route, REAL(mkfifo)(path, mode))
    return mkfifoat(AT_FDCWD, path, mode);
}

// What programs built before glibc 2.33 call.
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
int __xmknodat(int version, int fd, const char *path, mode_t mode, dev_t *device);
EXPORT int __xmknod(int version, const char *path, mode_t mode, dev_t *device) {
    return (void)version, mknod(path, mode, *device);
}
EXPORT int __xmknodat(int version, int fd, const char *path, mode_t mode, dev_t *device) {
    return (void)version, mknodat(fd, path, mode, *device);
}

// Names that nobody has yet. glibc's own would call its internal open.
static int temporary(char *pattern, int suffix, int (*attempt)(const char *, int), int flags) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t length = strlen(pattern);
    if (length < 6 + (size_t)suffix || memcmp(pattern + length - (size_t)suffix - 6, "XXXXXX", 6) != 0) return fs_fail(EINVAL);
    char *at = pattern + length - (size_t)suffix - 6;
    for (int tries = 0; tries < 1000; tries++) {
        unsigned char bytes[6];
        if (getentropy(bytes, sizeof bytes) < 0) return -1;
        for (int i = 0; i < 6; i++) at[i] = letters[bytes[i] % (sizeof letters - 1)];
        int result = attempt(pattern, flags);
        if (result >= 0 || errno != EEXIST) return result;
    }
    return -1;
}

static int make_file(const char *path, int flags) {
    return open(path, O_RDWR | O_CREAT | O_EXCL | (flags & ~O_ACCMODE), 0600);
}

static int make_folder(const char *path, int flags) { return (void)flags, mkdir(path, 0700); }

EXPORT int mkostemps(char *pattern, int suffix, int flags) {
    struct route route;
    int served = fs_route(AT_FDCWD, pattern, &route);
    if (served < 0) return -1;
    if (!served) return REAL(mkostemps)(pattern, suffix, flags);
    return temporary(pattern, suffix, make_file, flags);
}
int mkostemps64(char *pattern, int suffix, int flags) ALIAS(mkostemps);
EXPORT int mkstemps(char *pattern, int suffix) { return mkostemps(pattern, suffix, 0); }
int mkstemps64(char *pattern, int suffix) ALIAS(mkstemps);
EXPORT int mkostemp(char *pattern, int flags) { return mkostemps(pattern, 0, flags); }
int mkostemp64(char *pattern, int flags) ALIAS(mkostemp);
EXPORT int mkstemp(char *pattern) { return mkostemps(pattern, 0, 0); }
int mkstemp64(char *pattern) ALIAS(mkstemp);

EXPORT char *mkdtemp(char *pattern) {
    struct route route;
    int served = fs_route(AT_FDCWD, pattern, &route);
    if (served < 0) return NULL;
    if (!served) return REAL(mkdtemp)(pattern);
    return temporary(pattern, 0, make_folder, 0) < 0 ? NULL : pattern;
}
