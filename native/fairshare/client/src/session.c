// The process's sessions, one with each server: made at the first request, made anew when the server was restarted.
#define _GNU_SOURCE
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "real.h"

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
struct session *fs_giver(int server, uint64_t generation) {
    struct session *s = sessions[server];
    while (s && s->generation != generation) s = s->before;
    return s && !s->lost ? s : NULL;
}

bool fs_connected(int server, uint64_t generation) { return fs_giver(server, generation) != NULL; }

bool fs_remote(int server) {
    struct session *s = sessions[server];
    return s && s->doorbell < 0;
}

double fs_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct session *make(int server, bool first) {
    double until = fs_seconds() + (first ? 0 : fs_config.patience);
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
        if (!absent || fs_seconds() > until) {
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
    struct session *s = fs_giver(d->server, d->generation);
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

void fs_hold_sessions(bool hold) { hold ? pthread_mutex_lock(&connecting) : pthread_mutex_unlock(&connecting); }

void fs_forget_sessions(void) {
    pthread_mutex_init(&connecting, NULL);  // perhaps held by a thread that this process does not have
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
