// How served files come to be open in this process, and go.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "real.h"
#include "stripe.h"

enum { RESTING = 1024 };

void (*fs_on_standard)(int fd);

static struct description *resting[RESTING];
static unsigned rest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fs_hold_table(bool hold) { hold ? pthread_mutex_lock(&lock) : pthread_mutex_unlock(&lock); }

int fs_install(int fd, struct description *d) {
    if (fd < 0 || fd >= fs_max_descriptors()) return fs_fail(EMFILE);
    struct description *old = fs_put(fd, d);
    if (old) fs_drop(old);
    if (fd <= 2) fs_on_standard(fd);
    return fd;
}

void fs_duplicate(int from, int to) {
    struct description *d = fs_get(from);
    if (to < 0 || to >= fs_max_descriptors()) return;
    pthread_mutex_lock(&lock);
    if (d) d->references++;
    pthread_mutex_unlock(&lock);
    struct description *old = fs_put(to, d);
    if (old) fs_drop(old);
    if (to <= 2 && (d || old)) fs_on_standard(to);
}

struct description *fs_uninstall(int fd) {
    if (fd < 0 || fd >= fs_max_descriptors()) return NULL;
    struct description *d = fs_put(fd, NULL);
    if (d && fd <= 2) fs_on_standard(fd);
    return d;
}

void fs_drop(struct description *d) {
    pthread_mutex_lock(&lock);
    bool last = --d->references == 0;
    pthread_mutex_unlock(&lock);
    if (!last) return;
    fs_detach(d);
    // A thread may still be inside a call on it, as with any descriptor closed under its user. So it is freed
    // after many others, and not while a request on it is under way, which may wait long for its server.
    pthread_mutex_lock(&lock);
    struct description *oldest = resting[rest];
    for (int look = 0; look < RESTING && oldest && atomic_load(&oldest->pins); look++) {
        rest = (rest + 1) % RESTING;
        oldest = resting[rest];
    }
    if (oldest && atomic_load(&oldest->pins)) oldest = NULL;  // all of them: one is never freed
    resting[rest] = d;
    rest = (rest + 1) % RESTING;
    pthread_mutex_unlock(&lock);
    if (!oldest) return;
    fs_free_stripes(oldest);
    pthread_mutex_destroy(&oldest->lock);
    free(oldest->path);
    free(oldest);
}

static void share(int fd, struct description *d, void *with) {
    (void)fd;
    (void)with;
    if (d->shared || d->directory) return;
    pthread_mutex_lock(&d->lock);
    if (!d->shared) {
        struct call c = {
            .request = {.op = FS_SEEK, .flags = FS_SET, .offset = d->position, .mode = SEEK_SET}, .at = d};
        if (fs_do(&c) >= 0) d->shared = true;
    }
    pthread_mutex_unlock(&d->lock);
}

void fs_share_all(void) {
    if (fs_on()) fs_each(share, NULL);
}

// The handle that an inherited descriptor stands for: the name of its other end says it.
static bool handle_of(int fd, uint64_t *server, uint64_t *handle) {
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name;
    if (REAL(getpeername)(fd, (struct sockaddr *)&name, &length) < 0) {  // of a remote server: its own name
        length = sizeof name;
        if (REAL(getsockname)(fd, (struct sockaddr *)&name, &length) < 0) return false;
    }
    if (name.sun_family != AF_UNIX) return false;
    if (length <= sizeof(sa_family_t) + 1 || name.sun_path[0] != '\0') return false;
    char text[sizeof name.sun_path] = {0};
    memcpy(text, name.sun_path + 1, length - sizeof(sa_family_t) - 1);
    unsigned long long s, h;
    if (sscanf(text, "fairshare/%16llx/%16llx", &s, &h) != 2) return false;
    *server = s;
    *handle = h;
    return true;
}

struct same {
    uint64_t handle;
    int fd;
};

static void find_same(int fd, struct description *d, void *with) {
    struct same *same = with;
    if (d->handle == same->handle) same->fd = fd;
}

void fs_adopt_inherited(void) {
    DIR *folder = REAL(opendir)("/proc/self/fd");
    if (!folder) return;
    struct dirent *entry;
    while ((entry = REAL(readdir)(folder))) {
        int fd = atoi(entry->d_name);
        uint64_t server, handle;
        if (entry->d_name[0] == '.' || fd >= fs_max_descriptors() || !handle_of(fd, &server, &handle)) continue;
        struct same same = {handle, -1};
        fs_each(find_same, &same);
        if (same.fd >= 0) {
            fs_duplicate(same.fd, fd);
            continue;
        }
        struct {
            struct fs_attributes a;
            struct fs_grant grant;
        } found_it;
        struct description *d = fs_new_description(0, handle, 0, false, NULL);
        if (!d) break;
        struct call c = {.request.op = FS_DESCRIBE, .at = d, .out = &found_it, .out_len = sizeof found_it};
        int64_t found = -EBADF;
        for (d->server = 0; d->server < fs_config.servers; d->server++) {
            d->generation = 0;
            struct call hello = {.request.op = FS_PING, .server = d->server};
            if (fs_do(&hello) == 0 && fs_server_id(d->server) == server) {
                found = fs_do(&c);
                break;
            }
        }
        if (found < 0) {
            fs_drop(d);  // of another server, or gone
            continue;
        }
        d->flags = (int)c.reply.value;
        d->directory = (found_it.a.mode & S_IFMT) == S_IFDIR;
        d->ino = found_it.a.ino;
        d->shared = true;
        // Where a server is down, reading and writing fail: the home server has no data to give.
        if (c.reply.data_len >= sizeof found_it) fs_attach(d, &found_it.grant);
        fs_install(fd, d);
    }
    REAL(closedir)(folder);
}
