// What the files of this library know of each other.
//
// Programs see a server's files in a mount. This library moves the data of large reads and writes through memory that
// it shares with the server, where that comes to the same; whatever it does not know goes to the kernel.
#ifndef FAIRSHARE_ACCELERATE_H
#define FAIRSHARE_ACCELERATE_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "wire.h"

// The next definition of `name` behind ours: libc's, or another preloaded library's.
#define REAL(name)                                                              \
    __extension__({                                                             \
        static __typeof__(&name) known_##name;                                  \
        __typeof__(&name) real_##name = __atomic_load_n(&known_##name, __ATOMIC_RELAXED); \
        if (!real_##name) {                                                     \
            real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);           \
            __atomic_store_n(&known_##name, real_##name, __ATOMIC_RELAXED);     \
        }                                                                       \
        real_##name;                                                            \
    })
#define EXPORT __attribute__((visibility("default")))
#define ALIAS(of) __attribute__((visibility("default"), alias(#of)))

// Whether looking for an answer pays (segment.c).
struct luck {
    atomic_uint luck, unlucky;
};

// How copies are made (ways.c).
struct ways {
    atomic_uint calls;
    atomic_uint cost[2];  // ns per MiB, through the caches and past them; 0: not tried
};

// This process's connection to the server.
struct session {
    pid_t process;
    int socket;
    dev_t device;  // of the socket, and its inode: programs close descriptors that they did not open
    ino_t inode;
    unsigned char *segment;
    atomic_bool lost;
    atomic_uint slots;          // of this process's threads, one bit each
    atomic_uint turn;           // of the slots, where they go in turn
    atomic_uint server_on;      // the processor that answered last, from 1; 0: not known
    struct luck alone, pieces;  // of requests that are alone, and of large ones in pieces
    struct ways reads, writes;
};

// Less than 0, but no error of the server: it went away.
enum { LOST = INT32_MIN };

// segment.c: `in_turn`: for pieces, whose slots are best those that the other side has forgotten.
int fs_take_slot(struct session *s, bool in_turn, bool wait);
void fs_release_slot(struct session *s, int slot);
bool fs_far(struct session *s);  // whether the server was on another processor when it answered last
unsigned char *fs_slot_data(struct session *s, int slot);
void fs_post(struct session *s, int slot, const struct fs_request *request);
bool fs_soon(struct session *s, int slot);  // whether it is answered, or is so within a few microseconds
int fs_sleep(struct session *s, int slot);  // until it is answered: 0, or LOST
// The same, after a look; `alone`: nothing else of this thread is under way.
int fs_await(struct session *s, int slot, bool alone, struct fs_reply *reply);

// copy.c
void fs_copy(void *to, const void *from, size_t size);       // memcpy for large pieces
void fs_copy_away(void *to, const void *from, size_t size);  // the same, past the caches

// ways.c: a transfer that began then, and what came of it
bool fs_goes_away(struct session *s, struct ways *w, size_t size, struct timespec *began);
void fs_learn_way(struct ways *w, bool away, size_t size, const struct timespec *began);

// session.c: this process's session, made by what a mount says where there is none; NULL where there can be none now.
struct session *fs_session(const struct fs_vouched *said);
bool fs_owns(struct session *s);  // whether the socket's number is still its own

// bulk.c: bytes moved, an error of the server as -errno, or LOST.
ssize_t fs_bulk(struct session *s, uint64_t handle, bool write, char *buffer, size_t size, off_t offset);

#endif
