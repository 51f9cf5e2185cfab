// How a process comes to share memory with the server.
//
// A mount vouches for both: the server gave it a number, which the process shows, and a secret, which the server has to
// know. So data go to nobody who took the socket's place, and to the job that the mount's files belong to.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "accelerate.h"

enum { SILENCE = 10, PAUSE = 5 };  // seconds: for each answer of the server's; until the next attempt

static struct session *_Atomic current;
static pthread_mutex_t connecting = PTHREAD_MUTEX_INITIALIZER;
static atomic_long not_before;  // seconds of the monotonic clock

static long seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

bool fs_owns(struct session *s) {
    struct stat now;
    return fstat(s->socket, &now) == 0 && now.st_dev == s->device && now.st_ino == s->inode;
}

// Receive so many bytes, and the descriptor that comes along.
static bool receive(int socket, void *to, size_t size, int *descriptor) {
    for (char *at = to; size > 0;) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        struct iovec part = {at, size};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
        ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            if (*descriptor >= 0) close(*descriptor);
            memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
        }
        at += got;
        size -= (size_t)got;
    }
    return true;
}

// Programs choose low descriptors themselves (a shell's `exec 5>file`): ours goes high up.
static int out_of_the_way(int fd) {
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 700);
    if (high < 0) return fd;
    close(fd);
    return high;
}

// The memory that the server shares with us, or NULL.
static unsigned char *introduce(int socket, const struct fs_vouched *said) {
    unsigned char challenge[sizeof(struct fs_frame) + FS_CHALLENGE_BYTES];
    struct {
        struct fs_frame frame;
        struct fs_hello hello;
    } ours = {{FS_FRAME_MAGIC, sizeof ours.hello, 0}, {FS_VERSION, FS_WANT_SEGMENT, said->voucher}};
    struct {
        struct fs_frame frame;
        struct fs_reply reply;
    } head;
    struct fs_welcome welcome;
    int memory = -1;
    void *segment = MAP_FAILED;
    if (receive(socket, challenge, sizeof challenge, &memory) &&
        send(socket, &ours, sizeof ours, MSG_NOSIGNAL) == sizeof ours &&
        receive(socket, &head, sizeof head, &memory) && head.frame.magic == FS_FRAME_MAGIC &&
        head.frame.length == sizeof head.reply + sizeof welcome && head.reply.result >= 0 &&
        receive(socket, &welcome, sizeof welcome, &memory) && welcome.secret == said->secret && memory >= 0 &&
        welcome.slots == FS_SLOTS && welcome.slot_bytes == FS_SLOT_BYTES)
        segment = mmap(NULL, FS_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (memory >= 0) close(memory);
    return segment == MAP_FAILED ? NULL : segment;
}

static struct session *connected(const struct fs_vouched *said) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = SILENCE};
    struct stat about;
    if (memchr(said->socket, 0, sizeof address.sun_path) == NULL) return NULL;
    strcpy(address.sun_path, (const char *)said->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return NULL;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    unsigned char *segment = NULL;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) segment = introduce(fd, said);
    fd = out_of_the_way(fd);
    // Kept in pages of its own: no allocator's lock is needed, and a child's copy is the child's.
    struct session *s = MAP_FAILED;
    if (segment && fstat(fd, &about) == 0)
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        if (segment) munmap(segment, FS_SEGMENT_BYTES);
        close(fd);
        return NULL;
    }
    s->process = getpid();
    s->socket = fd;
    s->device = about.st_dev;
    s->inode = about.st_ino;
    s->segment = segment;
    return s;
}

struct session *fs_session(const struct fs_vouched *said) {
    struct session *s = current;
    if (s && !s->lost && s->process == getpid()) return s;
    if (!said || seconds() < not_before || pthread_mutex_trylock(&connecting) != 0) return NULL;
    s = current;
    if (!s || s->lost || s->process != getpid()) {
        // Other threads may still be inside a lost session: its memory stays. Its socket goes, which a forked child has a
        // copy of.
        if (s && fs_owns(s)) close(s->socket);
        s = connected(said);
        not_before = s ? 0 : seconds() + PAUSE;
        current = s;
    }
    pthread_mutex_unlock(&connecting);
    return s;
}
