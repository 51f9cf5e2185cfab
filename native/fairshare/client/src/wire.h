// What clients and servers of fairshare say to each other; the same definitions as the crate `wire`,
// whose tests compare the two. All integers little-endian, results below zero are -errno.
#ifndef FAIRSHARE_WIRE_H
#define FAIRSHARE_WIRE_H

#include <stdint.h>

#define FS_VERSION 2u
#define FS_FRAME_MAGIC 0x31525346u
#define FS_FRAME_BYTES 16
#define FS_CHALLENGE_BYTES 16
#define FS_TICKET_BYTES 128
#define FS_PROOF_BYTES 32
#define FS_WELCOME_BYTES 32
#define FS_ATTRIBUTES_BYTES 120
#define FS_STATFS_BYTES 64
#define FS_GRANT_BYTES 592
#define FS_MOST_SERVERS 64
#define FS_MAX_PATH 4095
#define FS_WANT_SEGMENT 1u
#define FS_AT_POSITION (-1)

// The shared memory of a session: header, slots (256 bytes each), data of the slots.
#define FS_SEGMENT_MAGIC 0x4553524148535246ull
#define FS_SLOTS 16
#define FS_SLOT_BYTES (128 << 10)
#define FS_POSTED_AT 64
#define FS_ARMED_AT 128
#define FS_SLOTS_AT 4096
#define FS_SLOT_STRIDE 256
#define FS_REQUEST_AT 16
#define FS_REPLY_AT 128
#define FS_DATA_AT 8192
#define FS_SEGMENT_BYTES (FS_DATA_AT + FS_SLOTS * FS_SLOT_BYTES)

enum fs_slot_state { FS_FREE, FS_POSTED, FS_WAITED, FS_DONE };

enum fs_op {
    FS_PING = 1,
    FS_STATUS = 2,
    FS_TICKET = 3,
    FS_RELOAD = 4,
    FS_SEND_AWAY = 5,
    FS_OPEN = 10,
    FS_CLOSE = 11,
    FS_DESCRIBE = 12,
    FS_READ = 13,
    FS_WRITE = 14,
    FS_SEEK = 15,
    FS_TRUNCATE = 16,
    FS_ALLOCATE = 17,
    FS_FSYNC = 18,
    FS_SET_FLAGS = 19,
    FS_GET_ATTRIBUTES = 20,
    FS_SET_ATTRIBUTES = 21,
    FS_ACCESS = 22,
    FS_STATFS = 23,
    FS_READ_DIRECTORY = 30,
    FS_MAKE_DIRECTORY = 31,
    FS_UNLINK = 32,
    FS_RENAME = 33,
    FS_LINK = 34,
    FS_SYMLINK = 35,
    FS_READLINK = 36,
    FS_RESOLVE = 37,
    FS_MAKE_NODE = 38,
    FS_GET_XATTR = 40,
    FS_SET_XATTR = 41,
    FS_LIST_XATTR = 42,
    FS_REMOVE_XATTR = 43,
    FS_LOCK = 50,
    FS_FLOCK = 51,
    FS_STRIPE_OPEN = 60,
    FS_STRIPE_REMOVE = 61,
    FS_STRIPE_BEGIN = 62,
    FS_STRIPE_END = 63,
    FS_STRIPE_GONE = 64,
};

// flags
#define FS_NO_FOLLOW 1u
#define FS_DATA_ONLY 1u
#define FS_SET 1u
#define FS_CHAINED 1u
#define FS_READING 1u
// mask of FS_SET_ATTRIBUTES
#define FS_MODE 1u
#define FS_UID 2u
#define FS_GID 4u
#define FS_ATIME 8u
#define FS_MTIME 16u

struct fs_request {
    uint32_t op;
    uint32_t flags;
    uint64_t handle;
    uint64_t handle2;
    int64_t offset;
    uint64_t size;
    uint32_t path_len;
    uint32_t path2_len;
    uint32_t mode;
    uint32_t mask;
    uint32_t uid;
    uint32_t gid;
    int64_t times[4];
};

struct fs_reply {
    int64_t result;
    uint64_t value;
    uint32_t data_len;
    uint32_t reserved;
};

struct fs_attributes {
    uint64_t ino, size, blocks, nlink;
    uint32_t mode, uid, gid, blksize;
    uint64_t rdev;
    int64_t times[8];  // access, modification, change, birth: seconds, nanoseconds
};

struct fs_statfs {
    uint64_t bsize, blocks, bfree, bavail, files, ffree, namelen, reserved;
};

// Where the data of a striped file lie, and what its holder may do with them.
struct fs_grant {
    uint64_t home, file, expires;
    uint32_t stripe, count, uid, rights, owner, group;
    uint64_t servers[FS_MOST_SERVERS];
    unsigned char signature[32];
};

// One entry of FS_READ_DIRECTORY: this, the name, zeros up to a multiple of 8.
struct fs_entry {
    uint64_t ino;
    uint64_t cursor;
    uint8_t kind;
    uint8_t zero;
    uint16_t name_len;
    char name[];
};
#define FS_ENTRY_NAME_AT 20

_Static_assert(sizeof(struct fs_request) == 96, "as in the crate wire");
_Static_assert(sizeof(struct fs_reply) == 24, "as in the crate wire");
_Static_assert(sizeof(struct fs_attributes) == FS_ATTRIBUTES_BYTES, "as in the crate wire");
_Static_assert(sizeof(struct fs_grant) == FS_GRANT_BYTES, "as in the crate wire");
_Static_assert(sizeof(struct fs_statfs) == FS_STATFS_BYTES, "as in the crate wire");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "fairshare's messages are little-endian"
#endif

#endif
