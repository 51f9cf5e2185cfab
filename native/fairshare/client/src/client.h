// What the files of this library know of each other.
#ifndef FAIRSHARE_CLIENT_H
#define FAIRSHARE_CLIENT_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "wire.h"

enum { MOST_SERVERS = FS_MOST_SERVERS };

// ---- configuration (config.c): read once from the environment, by the constructor (start.c) ----
struct config {
    bool on;                          // a prefix and a server are given
    char prefix[PATH_MAX];            // "/fs", without a slash at its end
    size_t prefix_len;
    int servers;
    char server[MOST_SERVERS][256];   // path of the Unix socket, or "tcp:HOST:PORT"
    bool has_ticket;
    unsigned char ticket[FS_TICKET_BYTES];
    unsigned char secret[FS_PROOF_BYTES];
    unsigned patience;                // seconds to wait for a server that has gone (FAIRSHARE_PATIENCE)
};
extern struct config fs_config;
void fs_read_environment(void);

// ---- open files (table.c; files.c: how they come and go) ----
struct description {
    uint64_t handle;      // 0: lost (its server restarted, and the file is not there any more)
    uint64_t generation;  // of the session that gave `handle`
    int server;           // which of them has it
    int flags;            // open's
    bool directory;
    bool shared;          // other processes may have it: the server keeps the position
    unsigned references;  // descriptors of this process
    atomic_uint pins;     // threads inside a request on it: it stays as long
    off_t position;       // where not shared
    uint64_t ino;
    pthread_mutex_t lock; // of the position
    char *path;           // from the root of the served tree; NULL where it was inherited
    struct stripes *stripes;   // where the data lie, of a striped file (stripe.h)
    struct description *home;  // of a striped file's object: the file
};

struct description *fs_get(int fd);
int fs_install(int fd, struct description *d);        // takes over the caller's reference; -1 and errno
struct description *fs_put(int fd, struct description *d);  // returns what was there
void fs_duplicate(int from, int to);                  // `to` is a copy of `from` (served or not)
struct description *fs_uninstall(int fd);             // NULL where not served; caller drops it
void fs_drop(struct description *d);
void fs_pin(struct description *d, bool pin);         // NULL is nothing to pin
struct description *fs_new_description(int server, uint64_t handle, int flags, bool directory, const char *path);
void fs_each(void (*visit)(int fd, struct description *d, void *with), void *with);
void fs_share_all(void);                              // hand all positions to the server
void fs_adopt_inherited(void);                        // after exec
int fs_max_descriptors(void);
extern void (*fs_on_standard)(int fd);                 // descriptor 0, 1 or 2 is another file now

// ---- requests (request.c), and the sessions that carry them (session.c) ----
struct call {
    struct fs_request request;
    struct description *at, *at2;     // whose handles go into the request; NULL for the root
    const char *path, *path2;
    const void *payload;
    size_t payload_len;
    void *out;                        // for the reply's data
    size_t out_len;
    struct fs_reply reply;
    int descriptor;                   // FS_OPEN: the new descriptor
    int server;                       // which one; where `at` and `path` do not say it
};
// Returns the result, or -errno. Waits at most for `patience` for a server that has gone.
int64_t fs_do(struct call *c);
// A grant in the data of a request; what the reply says beside its result.
int64_t fs_show(uint32_t op, int server, const struct fs_grant *grant, uint64_t *value);
// Read or write: any file; one whose data are on one server.
ssize_t fs_bulk(struct description *d, bool write, void *buffer, size_t size, off_t offset);
ssize_t fs_whole(struct description *d, bool write, void *buffer, size_t size, off_t offset);
struct session *fs_session_of(struct description *d);  // the one that moves its data; NULL and errno
uint64_t fs_generation(int server);
uint64_t fs_server_id(int server);
uint32_t fs_stripe_size(int server);  // of new files; 0: not striped
bool fs_connected(int server, uint64_t generation);
bool fs_remote(int server);           // over TCP
// Which server has a path (from the root of the served tree).
int fs_server_of(const char *path);
uint64_t fs_mix(uint64_t h);           // numbers that are close to each other become ones that are not
void fs_forget_sessions(void);        // in a forked child
bool fs_internal(int fd);             // of this library: programs neither close nor replace it
void fs_move_aside(int fd);           // somebody wants this number
// (fork.c) Whether this is a child that nobody told us of, which then speaks for itself; and that we were told.
void fs_listen_for_forks(void);
void fs_hear_fork(void);
void fs_heard_fork(void);
void fs_lose_positions(void);         // (table.c) of files whose position this process alone kept

// ---- who this process is (identity.c) ----
uint64_t fs_who(void);                // user and groups, as one number
bool fs_gave_up(uid_t user);          // this process was that user when it began, and is no more
bool fs_strange_thread(void);         // this thread is somebody else than the process
void fs_thread_changed(void);         // a raw call may have made it so

// ---- paths (path.c) ----
struct route {
    struct description *at;           // NULL: from the root
    bool outside;                     // not served, though its text begins so: `path` is where it leads
    char path[PATH_MAX];              // "": `at` itself (fs_route_file alone)
};
// Whether `path` (from directory `fd`) is served; then where. -1 and errno: too long.
int fs_route(int fd, const char *path, struct route *route);
// The same for a file that is looked at or opened: /dev/stdin, /dev/fd/N and /proc/self/fd/N are open files.
int fs_route_file(int fd, const char *path, struct route *route);
struct description *fs_by_number(const char *path);  // the served file that such a path names
bool fs_goes_up(const char *path);    // has a ".." in it
// What the kernel is asked for instead of a path that is not served: the same, unless it leaves the tree by "..".
static inline const char *fs_past(const struct route *route, const char *path) {
    return route->outside ? route->path : path;
}
int fs_absolute(const char *served, char *out, size_t size); // with the prefix in front
void fs_cwd_init(void);
const char *fs_cwd(void);             // served path of the working directory, or NULL
// The text of a new symbolic link as it is kept on the server, and back.
int fs_link_text(const char *text, char *out, size_t size);
void fs_link_shown(const char *text, char *out, size_t size);

// ---- what several files of calls use ----
int fs_open(struct route *route, int flags, mode_t mode);
int fs_attributes_at(struct description *at, const char *path, bool follow, struct fs_attributes *a);
ssize_t fs_read(struct description *d, void *buffer, size_t size);
ssize_t fs_write(struct description *d, const void *buffer, size_t size);
ssize_t fs_pread(struct description *d, void *buffer, size_t size, off_t offset);
ssize_t fs_pwrite(struct description *d, const void *buffer, size_t size, off_t offset);
off_t fs_seek(struct description *d, off_t offset, int whence);
int fs_close(int fd);
int64_t fs_answer(int64_t result);    // errno and -1 for -errno, else the result
mode_t fs_umask(void);
void fs_standard_changed(int fd);     // what fs_on_standard is
void fs_locks_used(void);
void fs_hold_table(bool hold);        // around a fork: no other thread is inside
void fs_hold_sessions(bool hold);
void fs_hold_paths(bool hold);
void fs_hold_streams(bool hold);
void fs_hold_directories(bool hold);
void fs_renew_locks(void);            // in a forked child

static inline int fs_fail(int problem) {
    errno = problem;
    return -1;
}

// Whether a call may be ours at all; the first line of every wrapper.
static inline bool fs_on(void) { return fs_config.on; }

#endif
