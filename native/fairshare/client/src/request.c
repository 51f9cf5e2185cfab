// Requests: with which session they go, and what becomes of them when the server goes.
//
// A request that the server's end cut off is sent again where that cannot do harm (reading, writing at
// an offset, asking). For others nobody knows whether they were carried out: they fail with EIO.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "real.h"
#include "session.h"

int64_t fs_show(uint32_t op, int server, const struct fs_grant *grant, uint64_t *value) {
    struct call c = {.request = {.op = op, .size = sizeof *grant}, .server = server, .payload = grant,
                     .payload_len = sizeof *grant};
    int64_t result = fs_do(&c);
    if (value) *value = c.reply.value;
    return result;
}

// Open an object again, on a server that has restarted.
static int reopen_object(struct description *object, uint64_t *handle) {
    struct {
        struct fs_attributes attributes;
        struct fs_grant grant;
    } now;
    struct call ask = {.request.op = FS_DESCRIBE, .at = object->home, .out = &now, .out_len = sizeof now};
    int64_t result = fs_do(&ask);
    if (result < 0 || ask.reply.data_len < sizeof now) return -EIO;
    return fs_show(FS_STRIPE_OPEN, object->server, &now.grant, handle) < 0 ? -EIO : 0;
}

static bool harmless(const struct call *c) {
    switch (c->request.op) {
        case FS_WRITE: return c->request.offset >= 0 && !(c->at && c->at->flags & O_APPEND);
        case FS_STRIPE_BEGIN: return c->request.offset >= 0 && !(c->at && c->at->flags & O_APPEND);
        case FS_READ: return c->request.offset >= 0;
        case FS_OPEN: return !(c->request.flags & (O_EXCL | O_TRUNC));
        case FS_PING: case FS_STATUS: case FS_DESCRIBE: case FS_FSYNC: case FS_GET_ATTRIBUTES:
        case FS_SET_ATTRIBUTES: case FS_ACCESS: case FS_STATFS: case FS_READ_DIRECTORY: case FS_READLINK:
        case FS_RESOLVE: case FS_GET_XATTR: case FS_LIST_XATTR: case FS_TRUNCATE: case FS_ALLOCATE: case FS_STRIPE_OPEN:
        case FS_STRIPE_REMOVE: case FS_STRIPE_GONE:
            return true;
        default: return false;
    }
}

struct renewal {
    struct description *d;
    int fd;
};

static void replace(int fd, struct description *d, void *with) {
    struct renewal *renewal = with;
    if (d != renewal->d) return;
    int flags = REAL(fcntl)(fd, F_GETFD);
    REAL(dup3)(renewal->fd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
}

// The server that knew the handle has gone. Its successor opens the file by name; it must be the same
// file. A position that other processes share is lost with the server, so such a file is too.
int fs_revive(struct session *s, struct description *d) {
    if (!d || d->generation == s->generation) return d && !d->handle ? -EIO : 0;
    if (d->generation == 0) {
        d->generation = s->generation;  // inherited: the handle is the server's, whoever asks
        return 0;
    }
    struct fs_attributes a;
    struct call probe = {.request.op = FS_DESCRIBE, .out = &a, .out_len = sizeof a};
    probe.request.handle = d->handle;
    int64_t result = s->doorbell >= 0 ? fs_over_segment(s, &probe) : fs_over_socket(s, &probe);
    if (result == LOST) return LOST;
    if (result >= 0) {  // the server lives: only this session is new (a forked child's)
        d->generation = s->generation;
        return 0;
    }
    if (d->home) {
        uint64_t handle;
        int problem = reopen_object(d, &handle);
        if (problem) return problem;
        d->handle = handle;
        d->generation = s->generation;
        return 0;
    }
    if (!d->path || (d->shared && !(d->flags & O_APPEND) && !d->directory)) return -EIO;
    struct call c = {.request = {.op = FS_OPEN, .flags = (uint32_t)(d->flags & ~(O_CREAT | O_EXCL | O_TRUNC))},
                     .path = d->path, .out = &a, .out_len = sizeof a, .descriptor = -1};
    result = s->doorbell >= 0 ? fs_over_segment(s, &c) : fs_over_socket(s, &c);
    if (result == LOST) return LOST;
    if (result < 0) return -EIO;
    bool same = a.ino == d->ino;
    if (same) {
        d->handle = c.reply.value;
        d->generation = s->generation;
        d->shared = false;
        struct renewal renewal = {d, c.descriptor};
        fs_each(replace, &renewal);
    }
    if (c.descriptor >= 0) REAL(close)(c.descriptor);
    return same ? 0 : -EIO;
}

// What is done with an open file by the rights that it was opened with.
static bool of_open_file(const struct call *c) {
    if (!c->at || c->path || c->path2) return false;
    switch (c->request.op) {
        case FS_CLOSE: case FS_DESCRIBE: case FS_READ: case FS_WRITE: case FS_SEEK: case FS_TRUNCATE: case FS_ALLOCATE:
        case FS_FSYNC: case FS_SET_FLAGS: case FS_GET_ATTRIBUTES: case FS_READ_DIRECTORY: case FS_RESOLVE:
        case FS_LOCK: case FS_FLOCK: case FS_STRIPE_BEGIN: case FS_STRIPE_END:
            return true;
        default: return false;
    }
}

// A name in a folder that was opened by another user, whom this process was: by the folder's path, with the rights
// of now. What has no path cannot be reached.
static int by_own_rights(struct description **at, const char **path, char *whole, struct session *s) {
    struct description *d = *at;
    if (!d || d->generation == 0 || d->generation == s->generation) return 0;
    struct session *opener = fs_giver(d->server, d->generation);
    if (!opener || opener->who == s->who) return 0;
    if (!d->path || !*path) return -EPERM;
    if ((*path)[0] != '/') {
        if (snprintf(whole, PATH_MAX, "%s/%s", d->path, *path) >= PATH_MAX) return -ENAMETOOLONG;
        *path = whole;
    }
    *at = NULL;
    return 0;
}

static int64_t carry_out(struct call *c) {
    fs_hear_fork();
    if (fs_strange_thread()) return -EPERM;
    char whole[2][PATH_MAX];
    int server = c->at ? c->at->server : c->path ? fs_server_of(c->path) : c->server;
    if (c->path2 && (c->request.op == FS_RENAME || c->request.op == FS_LINK) &&
        (c->at2 ? c->at2->server : fs_server_of(c->path2)) != server)
        return -EXDEV;  // on another server: programs then copy
    for (int attempt = 0;; attempt++) {
        bool opened = of_open_file(c);
        struct session *s = opened ? fs_session_of(c->at) : fs_session(server);
        if (!s) return -errno;
        int problem = opened ? 0 : by_own_rights(&c->at, &c->path, whole[0], s);
        if (problem == 0 && !opened) problem = by_own_rights(&c->at2, &c->path2, whole[1], s);
        if (problem < 0) return problem;
        problem = fs_revive(s, c->at);
        if (problem == 0 && c->at2) problem = fs_revive(s, c->at2);
        if (problem == LOST) {
            fs_lost(s);
            continue;
        }
        if (problem < 0) return problem;
        if (c->at) c->request.handle = c->at->handle;
        if (c->at2) c->request.handle2 = c->at2->handle;
        bool in_segment = s->doorbell >= 0 && c->payload_len <= FS_SLOT_BYTES / 2;
        int64_t result = in_segment ? fs_over_segment(s, c) : fs_over_socket(s, c);
        if (result != LOST) return result;
        fs_lost(s);
        if (!harmless(c) || attempt > 100) return -EIO;
    }
}

// The result alone says what went wrong: whoever calls readdir looks at errno even where nothing did.
int64_t fs_do(struct call *c) {
    int before = errno;
    struct description *at = c->at, *at2 = c->at2;
    fs_pin(at, true);
    fs_pin(at2, true);
    int64_t result = carry_out(c);
    fs_pin(at, false);
    fs_pin(at2, false);
    errno = before;
    return result;
}

int64_t fs_answer(int64_t result) {
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}

int fs_attributes_at(struct description *at, const char *path, bool follow, struct fs_attributes *a) {
    struct call c = {.request = {.op = FS_GET_ATTRIBUTES, .flags = follow ? 0 : FS_NO_FOLLOW}, .at = at,
                     .path = path, .out = a, .out_len = sizeof *a};
    return fs_answer(fs_do(&c));
}
