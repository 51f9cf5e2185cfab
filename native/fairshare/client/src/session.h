// One process's connection to the server, and its two ways to carry requests.
#ifndef FAIRSHARE_SESSION_H
#define FAIRSHARE_SESSION_H

#include <stdatomic.h>

#include "client.h"

// Whether looking for an answer pays (segment.c).
struct luck {
    atomic_uint luck, unlucky;
};

// How copies are made (ways.c).
struct ways {
    atomic_uint calls;
    atomic_uint cost[2];  // ns per MiB, through the caches and past them; 0: not tried
};

struct session {
    int index;                  // of the server
    int socket;
    int doorbell;               // -1: requests go over the socket
    unsigned char *segment;
    uint64_t server, generation;
    uint64_t who;               // who the process was when it began (fs_who)
    struct session *before;     // another user's of this process: for the files that it opened
    uint32_t stripe;            // bytes of a stripe of new files, or 0
    atomic_bool lost;
    atomic_uint slots;          // of this process's threads, one bit each
    atomic_uint turn;           // of the slots, where they go in turn
    atomic_uint server_on;      // the processor that answered last, from 1; 0: not known
    struct luck alone, pieces;  // of requests that are alone, and of large ones in pieces
    struct ways reads, writes;
    pthread_mutex_t talking;    // whoever expects something on the socket
};

enum { LOST = INT_MIN };  // instead of a result: the server went away

// socket.c
int fs_connect(int server); // a connected socket, or -errno
int fs_hello(struct session *s);
int fs_out_of_the_way(int fd);  // the same, under a number that programs do not choose
int fs_send(int socket, uint64_t tag, const struct iovec *parts, int count);
// A frame's body into `body` (at most `size`); descriptors that came along. -errno, or the length.
ssize_t fs_receive(int socket, uint64_t *tag, void *body, size_t size, int *descriptors, int *count);
int64_t fs_over_socket(struct session *s, struct call *c);

// segment.c
int64_t fs_over_segment(struct session *s, struct call *c);
// `in_turn`: for pieces, whose slots are best those that the other side has forgotten; else one that is at hand.
int fs_take_slot(struct session *s, bool in_turn, bool wait);
void fs_release_slot(struct session *s, int slot);
bool fs_far(struct session *s);  // whether the server was on another processor when it answered last
unsigned char *fs_slot_data(struct session *s, int slot);
void fs_post(struct session *s, int slot, const struct fs_request *request);
bool fs_soon(struct session *s, int slot);  // whether it is answered, or is so within a few microseconds
int fs_sleep(struct session *s, int slot);  // until it is answered: 0, or LOST
// The same, after a look; `alone`: nothing else of this thread is under way.
int fs_await(struct session *s, int slot, bool alone, struct fs_reply *reply);
bool fs_alive(struct session *s);

// copy.c
void fs_copy(void *to, const void *from, size_t size);       // memcpy for large pieces
void fs_copy_away(void *to, const void *from, size_t size);  // the same, past the caches

// ways.c: a transfer that began then, and what came of it
bool fs_goes_away(struct session *s, struct ways *w, size_t size, struct timespec *began);
void fs_learn_way(struct ways *w, bool away, size_t size, const struct timespec *began);

// session.c
struct session *fs_session(int server);  // the current one, made where needed; NULL and errno
struct session *fs_giver(int server, uint64_t generation);  // that gave a handle; NULL where it is lost
void fs_lost(struct session *s);
double fs_seconds(void);  // that have passed since any moment

// request.c
// Make a description's handle one of the current session. 0 or -errno.
int fs_revive(struct session *s, struct description *d);

#endif
