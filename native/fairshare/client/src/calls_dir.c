// Directory streams. A served one is a structure of ours behind the same opaque pointer.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

enum { ROOM = 32768 };
#define MARK 0xfa1554a2e0d12ec7ull

struct stream {
    uint64_t mark;
    int fd;
    uint64_t cursor;         // behind the entry given last
    int server;              // of several, whose part of the root is read now
    struct description *part;  // that part, and its descriptor; NULL for the first server's
    int part_fd;
    size_t filled, at;
    pthread_mutex_t lock;
    struct dirent entry;
    char buffer[ROOM];
};

// Streams that are ours, so that libc's own are never looked into.
static struct stream *known[1024];
static unsigned count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fs_hold_directories(bool hold) { hold ? pthread_mutex_lock(&lock) : pthread_mutex_unlock(&lock); }

static struct stream *ours(DIR *dir) {
    if (!fs_on() || __atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0) return NULL;
    struct stream *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++)
        if (known[i] && (void *)known[i] == (void *)dir) found = known[i];
    pthread_mutex_unlock(&lock);
    return found;
}

static bool enroll(struct stream *s, struct stream *instead) {
    bool done = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof known / sizeof *known && !done; i++)
        if (known[i] == instead) {
            known[i] = s;
            done = true;
        }
    if (done) count += s ? 1 : -1u;
    pthread_mutex_unlock(&lock);
    return done;
}

static DIR *stream_of(int fd) {
    struct stream *s = calloc(1, sizeof *s);
    if (s) {
        s->mark = MARK;
        s->fd = fd;
        pthread_mutex_init(&s->lock, NULL);
        if (enroll(s, NULL)) return (DIR *)(void *)s;
        free(s);
    }
    errno = EMFILE;
    return NULL;
}

EXPORT DIR *opendir(const char *path) {
    struct route route;
    int served = fs_route_file(AT_FDCWD, path, &route);
    if (served < 0) return NULL;
    if (!served) return REAL(opendir)(fs_past(&route, path));
    int fd = fs_open(&route, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return NULL;
    DIR *dir = stream_of(fd);
    if (!dir) fs_close(fd);
    return dir;
}

EXPORT DIR *fdopendir(int fd) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(fdopendir)(fd);
    if (!d->directory) {
        errno = ENOTDIR;
        return NULL;
    }
    return stream_of(fd);
}

static void drop_part(struct stream *s) {
    if (s->part) {
        fs_drop(s->part);
        REAL(close)(s->part_fd);
    }
    s->part = NULL;
    s->server = 0;
}

// The root of several servers is all their roots, one after the other. Opens the next one; false: no more.
static bool next_part(struct stream *s) {
    struct description *d = fs_get(s->fd);
    int server = s->server;
    if (!d || !d->path || strcmp(d->path, "/") != 0) return false;
    while (++server < fs_config.servers) {
        struct fs_attributes a;
        struct description *root = fs_new_description(server, 0, 0, true, NULL);  // says which server
        if (!root) return false;
        struct call c = {.request = {.op = FS_OPEN, .flags = O_RDONLY | O_DIRECTORY}, .at = root, .path = "/",
                         .out = &a, .out_len = sizeof a, .descriptor = -1};
        root->generation = 0;
        int64_t opened = fs_do(&c);
        if (opened < 0) {
            fs_drop(root);
            errno = (int)-opened;
            return false;  // a listing that lacks a server's part would be wrong
        }
        root->handle = c.reply.value;
        root->generation = fs_generation(server);
        drop_part(s);
        s->part = root;
        s->part_fd = c.descriptor;
        s->server = server;
        s->cursor = 0;
        return true;
    }
    return false;
}

static struct dirent *next(struct stream *s) {
again:
    if (s->at >= s->filled) {
        struct call c = {.request = {.op = FS_READ_DIRECTORY, .offset = (int64_t)s->cursor, .size = ROOM},
                         .at = s->part ? s->part : fs_get(s->fd), .out = s->buffer, .out_len = ROOM};
        if (!c.at) {
            errno = EBADF;
            return NULL;
        }
        int64_t length = fs_do(&c);
        if (length < 0) errno = (int)-length;
        if (length == 0 && next_part(s)) goto again;
        if (length <= 0) return NULL;
        s->filled = (size_t)length;
        s->at = 0;
    }
    struct fs_entry *from = (struct fs_entry *)(void *)(s->buffer + s->at);
    struct dirent *to = &s->entry;
    size_t length = from->name_len < sizeof to->d_name ? from->name_len : sizeof to->d_name - 1;
    to->d_ino = from->ino;
    to->d_off = (off_t)from->cursor;
    to->d_type = from->kind;
    to->d_reclen = sizeof *to;
    memcpy(to->d_name, s->buffer + s->at + FS_ENTRY_NAME_AT, length);
    to->d_name[length] = '\0';
    s->cursor = from->cursor;
    s->at += (FS_ENTRY_NAME_AT + from->name_len + 7u) / 8 * 8;
    if (s->server > 0 && (strcmp(to->d_name, ".") == 0 || strcmp(to->d_name, "..") == 0)) goto again;
    return to;
}

EXPORT struct dirent *readdir(DIR *dir) {
    struct stream *s = ours(dir);
    if (!s) return REAL(readdir)(dir);
    pthread_mutex_lock(&s->lock);
    struct dirent *entry = next(s);
    pthread_mutex_unlock(&s->lock);
    return entry;
}

EXPORT int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result) {
    struct stream *s = ours(dir);
    if (!s) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        return REAL(readdir_r)(dir, entry, result);
#pragma GCC diagnostic pop
    }
    int kept = errno, problem = 0;
    pthread_mutex_lock(&s->lock);
    errno = 0;
    struct dirent *found = next(s);
    if (found)
        *entry = *found;
    else
        problem = errno;
    *result = found ? entry : NULL;
    pthread_mutex_unlock(&s->lock);
    errno = kept;
    return problem;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
struct dirent64;
struct dirent64 *readdir64(DIR *dir) ALIAS(readdir);
int readdir64_r(DIR *dir, struct dirent64 *entry, struct dirent64 **result) ALIAS(readdir_r);
#pragma GCC diagnostic pop

EXPORT int closedir(DIR *dir) {
    struct stream *s = ours(dir);
    if (!s) return REAL(closedir)(dir);
    enroll(NULL, s);
    int fd = s->fd;
    drop_part(s);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return fs_close(fd);
}

EXPORT int dirfd(DIR *dir) {
    struct stream *s = ours(dir);
    return s ? s->fd : REAL(dirfd)(dir);
}

EXPORT long telldir(DIR *dir) {
    struct stream *s = ours(dir);
    return s ? (long)s->cursor : REAL(telldir)(dir);
}

EXPORT void seekdir(DIR *dir, long place) {
    struct stream *s = ours(dir);
    if (!s) return REAL(seekdir)(dir, place);
    pthread_mutex_lock(&s->lock);
    drop_part(s);  // places count in the first server's part; of several servers only 0 is good
    s->cursor = (uint64_t)place;
    s->at = s->filled = 0;
    pthread_mutex_unlock(&s->lock);
}

EXPORT void rewinddir(DIR *dir) {
    if (ours(dir))
        seekdir(dir, 0);
    else
        REAL(rewinddir)(dir);
}

// glibc's scandir opens by itself.
EXPORT int scandirat(int fd, const char *path, struct dirent ***list, int (*choose)(const struct dirent *),
                     int (*order)(const struct dirent **, const struct dirent **)) {
    struct route route;
    int served = fs_route(fd, path, &route);
    if (served < 0) return -1;
    if (!served) return REAL(scandirat)(fd, fs_past(&route, path), list, choose, order);
    int folder = fs_open(&route, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) return -1;
    DIR *dir = stream_of(folder);
    if (!dir) return fs_close(folder), -1;
    struct dirent **found = NULL, *entry;
    int n = 0, room = 0, problem = 0;
    while ((errno = 0, entry = readdir(dir))) {
        if (choose && !choose(entry)) continue;
        if (n == room) {
            room = room ? 2 * room : 32;
            struct dirent **larger = realloc(found, (size_t)room * sizeof *found);
            if (!larger) break;
            found = larger;
        }
        if (!(found[n] = malloc(sizeof *entry))) break;
        *found[n++] = *entry;
    }
    problem = errno;
    closedir(dir);
    if (problem) {
        while (n > 0) free(found[--n]);
        free(found);
        errno = problem;
        return -1;
    }
    if (order && n > 1) qsort(found, (size_t)n, sizeof *found, (int (*)(const void *, const void *))(void *)order);
    *list = found ? found : malloc(sizeof *found);
    return n;
}

EXPORT int scandir(const char *path, struct dirent ***list, int (*choose)(const struct dirent *),
                   int (*order)(const struct dirent **, const struct dirent **)) {
    struct route route;
    int served = fs_route(AT_FDCWD, path, &route);
    return served ? scandirat(AT_FDCWD, path, list, choose, order)
                  : REAL(scandir)(fs_past(&route, path), list, choose, order);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
int scandir64(const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
              int (*)(const struct dirent64 **, const struct dirent64 **)) ALIAS(scandir);
int scandirat64(int, const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
                int (*)(const struct dirent64 **, const struct dirent64 **)) ALIAS(scandirat);
#pragma GCC diagnostic pop

EXPORT ssize_t getdents64(int fd, void *buffer, size_t size) {
    if (!fs_get(fd)) return REAL(getdents64)(fd, buffer, size);
    errno = EOPNOTSUPP;  // readdir is served
    return -1;
}
