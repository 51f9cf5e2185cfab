// Descriptors of this process that are served files.
//
// Each is a real descriptor too: one end of a socket pair whose other end the server holds. So dup, fork,
// exec and limits are the kernel's own, and a call that nobody intercepts fails instead of misleading.
#define _GNU_SOURCE
#include "client.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static struct description *_Atomic table[MOST];
int fs_max_descriptors(void) { return MOST; }

struct description *fs_get(int fd) { return fd >= 0 && fd < MOST && fs_on() ? table[fd] : NULL; }

struct description *fs_put(int fd, struct description *d) { return atomic_exchange(&table[fd], d); }

struct description *fs_new_description(int server, uint64_t handle, int flags, bool directory, const char *path) {
    struct description *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->handle = handle;
    d->server = server;
    d->generation = fs_generation(server);
    d->flags = flags;
    d->directory = directory;
    d->references = 1;
    pthread_mutex_init(&d->lock, NULL);
    if (path && !(d->path = strdup(path))) {
        free(d);
        return NULL;
    }
    return d;
}

void fs_pin(struct description *d, bool pin) {
    if (!d) return;
    if (pin)
        atomic_fetch_add(&d->pins, 1);
    else
        atomic_fetch_sub(&d->pins, 1);
}

void fs_each(void (*visit)(int fd, struct description *d, void *with), void *with) {
    for (int fd = 0; fd < MOST; fd++)
        if (table[fd]) visit(fd, table[fd], with);
}

static void renew(int fd, struct description *d, void *with) {
    (void)fd;
    (void)with;
    pthread_mutex_init(&d->lock, NULL);
    atomic_store(&d->pins, 0);
}

void fs_renew_locks(void) { fs_each(renew, NULL); }

static void lose(int fd, struct description *d, void *with) {
    (void)fd;
    (void)with;
    if (d->shared || d->directory) return;
    d->handle = 0;
    d->generation = UINT64_MAX;  // of no session
    d->shared = true;            // and not to be opened anew
    d->flags &= ~O_APPEND;
}

void fs_lose_positions(void) { fs_each(lose, NULL); }
