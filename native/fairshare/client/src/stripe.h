// Files whose data lie on several servers: which stripe lies where, and the objects that hold them.
#ifndef FAIRSHARE_STRIPE_H
#define FAIRSHARE_STRIPE_H

#include "client.h"

struct stripes {
    uint64_t file;
    uint32_t stripe;  // bytes
    int count;        // of servers
    uint64_t server[MOST_SERVERS];              // their numbers, as the layout has them
    struct description *object[MOST_SERVERS];   // the file's object on each
};

// A contiguous part of a file on one server.
struct stripe_part {
    int server;  // which of the layout's
    off_t offset;
    size_t size;
};

// stripe.c
struct stripe_part fs_stripe_part(const struct stripes *stripes, off_t offset, size_t size);
bool fs_stripe_servers(uint64_t *servers);  // numbers of all servers; false: one cannot be reached
int fs_server_by_id(uint64_t id);           // -1: not among ours, or not to be reached
// Open the objects of a file that was just opened; -1 and errno.
int fs_attach(struct description *d, const struct fs_grant *grant);
void fs_detach(struct description *d);      // nobody has it open any more
void fs_free_stripes(struct description *d);
void fs_remove_objects(int home, const struct fs_grant *grant);

// stripe_io.c
int fs_striped_truncate(struct description *d, off_t size);
int fs_striped_sync(struct description *d, uint32_t flags);

#endif
