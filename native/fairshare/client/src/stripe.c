// The objects of striped files: where stripes lie, and how objects are opened, closed and removed.
#define _GNU_SOURCE
#include "stripe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

// Every run of as many stripes as there are servers lies on all of them, in an order that a hash of file,
// run and server decides: no server has more than one stripe more than another, and no two files begin
// alike. The servers of a file are in its layout, so this never changes for it.
static int server_of(const struct stripes *s, uint64_t stripe) {
    uint64_t run = stripe / (uint64_t)s->count, weight[MOST_SERVERS];
    int place = (int)(stripe % (uint64_t)s->count);
    for (int i = 0; i < s->count; i++) weight[i] = fs_mix(fs_mix(s->file ^ fs_mix(run + 1)) ^ s->server[i]);
    for (int i = 0; i < s->count; i++) {
        int before = 0;
        for (int k = 0; k < s->count; k++) before += weight[k] < weight[i] || (weight[k] == weight[i] && k < i);
        if (before == place) return i;
    }
    return 0;
}

struct stripe_part fs_stripe_part(const struct stripes *s, off_t offset, size_t size) {
    uint64_t stripe = (uint64_t)offset / s->stripe;
    uint64_t left = (stripe + 1) * s->stripe - (uint64_t)offset;
    return (struct stripe_part){server_of(s, stripe), offset, size < left ? size : (size_t)left};
}

bool fs_stripe_servers(uint64_t *servers) {
    for (int i = 0; i < fs_config.servers; i++) {
        if (!fs_session(i)) return false;
        servers[i] = fs_server_id(i);
    }
    return true;
}

int fs_server_by_id(uint64_t id) {
    for (int i = 0; i < fs_config.servers; i++)
        if (fs_server_id(i) == id) return i;
    for (int i = 0; i < fs_config.servers; i++)  // those that this process has not spoken to
        if (fs_server_id(i) == 0 && fs_session(i) && fs_server_id(i) == id) return i;
    return -1;
}

int fs_attach(struct description *d, const struct fs_grant *grant) {
    if (grant->count == 0 || grant->count > MOST_SERVERS || grant->stripe == 0) return fs_fail(EPROTO);
    struct stripes *s = calloc(1, sizeof *s);
    if (!s) return -1;
    s->file = grant->file;
    s->stripe = grant->stripe;
    s->count = (int)grant->count;
    memcpy(s->server, grant->servers, sizeof s->server);
    d->stripes = s;
    int problem = 0;
    for (int i = 0; i < s->count && !problem; i++) {
        uint64_t handle = 0;
        int server = fs_server_by_id(s->server[i]);
        // A server that is down, or that this program was not told of, or that has lost the object.
        if (server < 0 || fs_show(FS_STRIPE_OPEN, server, grant, &handle) < 0) problem = EIO;
        if (!problem && !(s->object[i] = fs_new_description(server, handle, d->flags & O_ACCMODE, false, NULL)))
            problem = ENOMEM;
        if (!problem) s->object[i]->home = d;
    }
    if (!problem) return 0;
    fs_detach(d);
    fs_free_stripes(d);
    errno = problem;
    return -1;
}

// The servers close objects with the session, so only those that can be told are told.
void fs_detach(struct description *d) {
    for (int i = 0; d->stripes && i < d->stripes->count; i++) {
        struct description *o = d->stripes->object[i];
        if (!o || !fs_connected(o->server, o->generation)) continue;
        struct call c = {.request = {.op = FS_CLOSE, .mode = !d->shared}, .at = o};
        fs_do(&c);
    }
}

void fs_free_stripes(struct description *d) {
    for (int i = 0; d->stripes && i < d->stripes->count; i++) {
        if (!d->stripes->object[i]) continue;
        pthread_mutex_destroy(&d->stripes->object[i]->lock);
        free(d->stripes->object[i]);
    }
    free(d->stripes);
    d->stripes = NULL;
}

// The last name of a file is gone. Objects on a server that cannot be reached stay until somebody else
// removes a file: the home server remembers them, and tells of one at a time.
void fs_remove_objects(int home, const struct fs_grant *grant) {
    struct fs_grant now = *grant;
    for (int more = 0; more < 8; more++) {
        bool all = true;
        for (unsigned i = 0; i < now.count && i < MOST_SERVERS; i++) {
            int server = fs_server_by_id(now.servers[i]);
            if (server < 0 || fs_show(FS_STRIPE_REMOVE, server, &now, NULL) < 0) all = false;
        }
        if (!all) return;
        struct fs_grant next;
        struct call c = {.request = {.op = FS_STRIPE_GONE, .size = sizeof now}, .server = home, .payload = &now,
                         .payload_len = sizeof now, .out = &next, .out_len = sizeof next};
        if (fs_do(&c) < 0 || c.reply.data_len < sizeof next) return;
        now = next;
    }
}
