// The process's session: made at the first request, made anew when the server was restarted.
//
// A request that the server's end cut off is sent again where that cannot do harm (reading, writing at
// an offset, asking). For others nobody knows whether they were carried out: they fail with EIO.
#define _GNU_SOURCE
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "real.h"
#include "stripe.h"

static _Atomic(struct session *) sessions[MOST_SERVERS];
static atomic_ulong generations = 1;
static pthread_mutex_t connecting = PTHREAD_MUTEX_INITIALIZER;

uint64_t fs_generation(int server) {
    struct session *s = sessions[server];
    return s ? s->generation : 0;
}

uint64_t fs_server_id(int server) {
    struct session *s = sessions[server];
    return s ? s->server : 0;
}

uint32_t fs_stripe_size(int server) {
    struct session *s = fs_session(server);
    return s ? s->stripe : 0;
}

// The session that gave a handle: the current one, or that of a user who this process was before.
static struct session *giver(int server, uint64_t generation) {
    struct session *s = sessions[server];
    while (s && s->generation != generation) s = s->before;
    return s && !s->lost ? s : NULL;
}

bool fs_connected(int server, uint64_t generation) { return giver(server, generation) != NULL; }

bool fs_remote(int server) {
    struct session *s = sessions[server];
    return s && s->doorbell < 0;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct session *make(int server, bool first) {
    double until = seconds() + (first ? 0 : fs_config.patience);
    for (;;) {
        struct session *s = calloc(1, sizeof *s);
        if (!s) return NULL;
        s->doorbell = -1;
        s->index = server;
        s->generation = atomic_fetch_add(&generations, 1);
        s->who = fs_who();
        pthread_mutex_init(&s->talking, NULL);
        int problem = fs_connect(server);
        if (problem >= 0) {
            s->socket = problem;
            problem = fs_hello(s);
            if (problem == 0) return s;
            REAL(close)(s->socket);
        }
        free(s);
        bool absent = problem == -ECONNREFUSED || problem == -ENOENT || problem == -EPIPE ||
                      problem == -ECONNRESET || problem == -EAGAIN;
        if (!absent || seconds() > until) {
            errno = absent ? EHOSTDOWN : -problem;
            return NULL;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

// The session of the user that this process is now, out of those it had; it becomes the first.
static struct session *recall(int server, uint64_t who) {
    for (struct session *s = sessions[server], *newer = NULL; s; newer = s, s = s->before) {
        if (s->who != who || s->lost) continue;
        if (newer) {
            newer->before = s->before;
            s->before = sessions[server];
        }
        return s;
    }
    return NULL;
}

struct session *fs_session(int server) {
    uint64_t who = fs_who();
    struct session *s = sessions[server];
    if (s && !s->lost && s->who == who) return s;
    pthread_mutex_lock(&connecting);
    struct session *newest = sessions[server];
    s = recall(server, who);
    if (!s && (s = make(server, newest == NULL || !newest->lost))) {
        // A lost one's memory and descriptors stay: another thread may still look at it, and a number that
        // is given out again would be another file's.
        if (newest && newest->lost) shutdown(newest->socket, SHUT_RDWR);
        s->before = newest;
    }
    if (s) sessions[server] = s;
    pthread_mutex_unlock(&connecting);
    return s;
}

struct session *fs_session_of(struct description *d) {
    struct session *s = giver(d->server, d->generation);
    return s ? s : fs_session(d->server);
}

bool fs_internal(int fd) {
    for (int i = 0; i < fs_config.servers && fd >= 0; i++)
        for (struct session *s = sessions[i]; s; s = s->before)
            if (fd == s->socket || fd == s->doorbell) return true;
    return false;
}

void fs_move_aside(int fd) {
    for (int i = 0; i < fs_config.servers && fd >= 0; i++)
        for (struct session *s = sessions[i]; s; s = s->before) {
            if (fd != s->socket && fd != s->doorbell) continue;
            int moved = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, fd + 1);
            if (moved < 0)
                fs_lost(s);
            else
                *(fd == s->socket ? &s->socket : &s->doorbell) = moved;
        }
}

void fs_lost(struct session *s) { s->lost = true; }

void fs_forget_session(void) {
    for (int i = 0; i < fs_config.servers; i++) {
        struct session *s = sessions[i], *before;
        sessions[i] = NULL;
        for (; s; s = before) {
            before = s->before;
            REAL(close)(s->socket);
            if (s->doorbell >= 0) REAL(close)(s->doorbell);
            if (s->segment) munmap(s->segment, FS_SEGMENT_BYTES);
            free(s);
        }
    }
}

// Around a fork: positions go to the server, no lock is held by a thread that the child does not have,
// and the child speaks for itself.
void fs_before_fork(void) {
    fs_share_all();
    pthread_mutex_lock(&connecting);
    fs_hold_paths(true);
    fs_hold_directories(true);
    fs_hold_streams(true);
    fs_hold_table(true);
}

void fs_after_fork(bool child) {
    fs_hold_table(false);
    fs_hold_streams(false);
    fs_hold_directories(false);
    fs_hold_paths(false);
    pthread_mutex_unlock(&connecting);
    if (!child) return;
    fs_forget_session();
    fs_renew_locks();
}

// Locks may be held by threads that the child does not have. A position that its parent kept cannot be shared any more,
// so such a file is lost to the child.
void fs_after_unheard_fork(void) {
    pthread_mutex_init(&connecting, NULL);
    fs_forget_session();
    fs_renew_locks();
    fs_lose_positions();
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
        int problem = fs_reopen_object(d, &handle);
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
    struct session *opener = giver(d->server, d->generation);
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

int fs_answer(int64_t result) {
    if (result >= 0) return (int)result;
    errno = (int)-result;
    return -1;
}
