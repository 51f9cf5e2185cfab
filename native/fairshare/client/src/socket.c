// Frames on the socket: how every session begins, and how remote clients send requests.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "real.h"
#include "session.h"
#include "sha256.h"

// No single wait for the peer is longer (milliseconds). A server under load answers late, but it answers.
enum { SILENCE = 120000, MOST_PASSED = 4 };

static void retry_timeout(int fd) {
    struct timeval limit = {.tv_sec = SILENCE / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static int connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    retry_timeout(fd);
    if (REAL(connect)(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int problem = -errno;
        REAL(close)(fd);
        return problem;
    }
    return fd;
}

static bool read_line(const char *path, char *text, size_t room) {
    int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : REAL(read)(fd, text, room - 1);
    if (fd >= 0) REAL(close)(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

// Whether a number stands for all users that our user namespace does not know, us among them perhaps: whoever has it
// is anybody. Where /proc is missing that cannot be told.
static bool stands_for_many(uid_t user) {
    char text[4096];
    if (read_line("/proc/sys/kernel/overflowuid", text, sizeof text) && strtoul(text, NULL, 10) != user) return false;
    unsigned long count, known = 0;
    if (read_line("/proc/self/uid_map", text, sizeof text))
        for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            if (sscanf(line, "%*u %*u %lu", &count) == 1) known += count;
    return known < UINT32_MAX;
}

// A socket's path can be somebody else's when the server is down: root's and our own user's servers are
// believed, and that of FAIRSHARE_SERVER_USER (a number).
static int believe(int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (REAL(getsockopt)(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return -errno;
    const char *other = getenv("FAIRSHARE_SERVER_USER");
    if (peer.uid == 0 || (peer.uid == geteuid() && !stands_for_many(peer.uid))) return 0;
    if (other && *other && strtoul(other, NULL, 10) == peer.uid) return 0;
    static bool said;
    if (!said)
        fprintf(stderr,
                "fairshare client: the server runs as user %u, who is neither root nor %s: "
                "FAIRSHARE_SERVER_USER=%u if you trust %s\n",
                (unsigned)peer.uid, peer.uid == geteuid() ? "surely you, as that is anybody in a user namespace" : "you",
                (unsigned)peer.uid, peer.uid == geteuid() ? "all of them" : "it");
    said = true;
    return -EPERM;
}

static int connect_tcp(const char *where) {
    char host[256];
    const char *colon = strrchr(where, ':');
    if (!colon || (size_t)(colon - where) >= sizeof host) return -EINVAL;
    memcpy(host, where, (size_t)(colon - where));
    host[colon - where] = '\0';
    struct addrinfo *list, hints = {.ai_socktype = SOCK_STREAM};
    if (getaddrinfo(host, colon + 1, &hints, &list) != 0) return -EHOSTUNREACH;
    int problem = -EHOSTUNREACH;
    for (struct addrinfo *one = list; one; one = one->ai_next) {
        int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        retry_timeout(fd);
        if (REAL(connect)(fd, one->ai_addr, one->ai_addrlen) == 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            problem = fd;
            break;
        }
        problem = -errno;
        REAL(close)(fd);
    }
    freeaddrinfo(list);
    return problem;
}

static bool is_tcp(int server) { return strncmp(fs_config.server[server], "tcp:", 4) == 0; }

int fs_connect(int server) {
    const char *where = fs_config.server[server];
    int fd = is_tcp(server) ? connect_tcp(where + 4) : connect_unix(where);
    int problem = fd < 0 || is_tcp(server) ? 0 : believe(fd);
    if (problem) {
        REAL(close)(fd);
        return problem;
    }
    return fd < 0 ? fd : fs_out_of_the_way(fd);
}

// Programs choose low descriptors themselves (a shell's `exec 5>file`): ours go high up.
int fs_out_of_the_way(int fd) {
    struct rlimit limit;
    int least = 700;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1024) least = (int)limit.rlim_cur * 3 / 4;
    int high = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, least);
    if (high < 0) return fd;
    REAL(close)(fd);
    return high;
}

int fs_send(int socket, uint64_t tag, const struct iovec *parts, int count) {
    struct fs_frame header = {FS_FRAME_MAGIC, 0, tag};
    struct iovec all[6] = {{&header, sizeof header}};
    for (int i = 0; i < count; i++) {
        all[i + 1] = parts[i];
        header.length += (uint32_t)parts[i].iov_len;
    }
    struct msghdr message = {.msg_iov = all, .msg_iovlen = (size_t)count + 1};
    while (message.msg_iovlen > 0) {
        ssize_t sent = REAL(sendmsg)(socket, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return -errno;
        while (message.msg_iovlen > 0 && (size_t)sent >= message.msg_iov->iov_len) {
            sent -= (ssize_t)message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen > 0) {
            message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + sent;
            message.msg_iov->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

static ssize_t receive_some(int socket, void *to, size_t size, int *descriptors, int *count) {
    union {
        char bytes[CMSG_SPACE(MOST_PASSED * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {to, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do got = REAL(recvmsg)(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) return -errno;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (got > 0 && header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        int n = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + (size_t)i * sizeof fd, sizeof fd);
            if (descriptors && *count < MOST_PASSED)
                descriptors[(*count)++] = fd;
            else
                REAL(close)(fd);
        }
    }
    return got;
}

static int receive_all(int socket, void *to, size_t size, int *descriptors, int *count) {
    char *at = to;
    while (size > 0) {
        ssize_t got = receive_some(socket, at, size, descriptors, count);
        if (got == 0) return -ECONNRESET;
        if (got < 0) return (int)got;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

ssize_t fs_receive(int socket, uint64_t *tag, void *body, size_t size, int *descriptors, int *count) {
    struct fs_frame header;
    int problem = receive_all(socket, &header, sizeof header, descriptors, count);
    if (problem) return problem;
    if (header.magic != FS_FRAME_MAGIC || header.length > size) return -EPROTO;
    *tag = header.tag;
    problem = receive_all(socket, body, header.length, descriptors, count);
    return problem ? problem : (ssize_t)header.length;
}

// Said once: a program that goes on asking has heard it.
static void doubt(const char *text) {
    static bool said;
    if (!said) fprintf(stderr, "fairshare client: %s\n", text);
    said = true;
}

int fs_hello(struct session *s) {
    bool local = !is_tcp(s->index);
    unsigned char challenge[FS_CHALLENGE_BYTES], proof[FS_PROOF_BYTES];
    struct {
        struct fs_reply reply;
        union {
            struct {
                struct fs_welcome says;
                unsigned char proof[FS_PROOF_BYTES];
            } welcome;
            char reason[512];
        } data;
    } answer;
    uint64_t tag;
    int passed[MOST_PASSED], count = 0;
    ssize_t length = fs_receive(s->socket, &tag, challenge, sizeof challenge, NULL, NULL);
    if (length < 0) return (int)length;
    struct fs_hello hello = {FS_VERSION, local ? FS_WANT_SEGMENT : 0, 0};
    struct iovec parts[4] = {{&hello, sizeof hello}};
    int n = 1;
    uint32_t holder;
    memcpy(&holder, fs_config.ticket, sizeof holder);
    bool of_before = fs_config.has_ticket && fs_gave_up(holder);  // then it is not shown
    if (!local && of_before) return -EPERM;  // and over TCP nothing else says who somebody is
    bool shown = fs_config.has_ticket && !of_before;
    unsigned char asked[sizeof FS_ANSWER - 1 + sizeof challenge + FS_NONCE_BYTES];  // what the server has to sign
    unsigned char *nonce = asked + sizeof asked - FS_NONCE_BYTES;
    if (shown) {
        memcpy(asked, FS_ANSWER, sizeof FS_ANSWER - 1);
        memcpy(asked + sizeof FS_ANSWER - 1, challenge, sizeof challenge);
        if (getrandom(nonce, FS_NONCE_BYTES, 0) != FS_NONCE_BYTES) return -EIO;
        fs_hmac(fs_config.secret, sizeof fs_config.secret, challenge, sizeof challenge, proof);
        parts[n++] = (struct iovec){fs_config.ticket, sizeof fs_config.ticket};
        parts[n++] = (struct iovec){proof, sizeof proof};
        parts[n++] = (struct iovec){nonce, FS_NONCE_BYTES};
    }
    int problem = fs_send(s->socket, 0, parts, n);
    if (problem) return problem;
    length = fs_receive(s->socket, &tag, &answer, sizeof answer, passed, &count);
    if (length < (ssize_t)sizeof answer.reply) return length < 0 ? (int)length : -EPROTO;
    if (answer.reply.result < 0) {
        int text = (int)(length - (ssize_t)sizeof answer.reply);
        static char said[sizeof answer.data.reason];  // a program that goes on asking hears it once
        if (strncmp(said, answer.data.reason, 24) != 0) {
            fprintf(stderr, "fairshare client: the server refuses: %.*s\n", text, answer.data.reason);
            snprintf(said, sizeof said, "%.*s", text, answer.data.reason);
        }
        return (int)answer.reply.result;
    }
    if (shown) fs_hmac(fs_config.secret, sizeof fs_config.secret, asked, sizeof asked, proof);
    if (shown && (length < (ssize_t)(sizeof answer.reply + sizeof answer.data.welcome) ||
                  memcmp(proof, answer.data.welcome.proof, sizeof proof) != 0)) {
        while (count > 0) REAL(close)(passed[--count]);
        doubt("whoever answers there does not know the ticket's secret, as its server does");
        return -EPERM;
    }
    s->server = answer.data.welcome.says.server;
    s->stripe = answer.data.welcome.says.stripe;
    if (!local || answer.data.welcome.says.slots == 0) return 0;
    if (count != 2 || answer.data.welcome.says.slots != FS_SLOTS || answer.data.welcome.says.slot_bytes != FS_SLOT_BYTES) {
        while (count > 0) REAL(close)(passed[--count]);
        return -EPROTO;
    }
    void *segment =
        REAL(mmap)(NULL, FS_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, passed[0], 0);
    REAL(close)(passed[0]);
    if (segment == MAP_FAILED) {
        problem = -errno;
        REAL(close)(passed[1]);
        return problem;
    }
    s->segment = segment;
    s->doorbell = fs_out_of_the_way(passed[1]);
    return 0;
}

// A descriptor for a remote file: a socket that is not connected, so that a call which nobody intercepts
// fails. Its own name says what it stands for, to a program that inherits it.
static int placeholder(uint64_t server, uint64_t handle) {
    static unsigned count;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    // The process's number makes it unique: a handle can be opened again after a restart of the server.
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "fairshare/%016llx/%016llx/%d.%u",
                          (unsigned long long)server, (unsigned long long)handle, getpid(),
                          (unsigned)__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    REAL(bind)(fd, (struct sockaddr *)&name, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)length));
    return fd;
}

int64_t fs_over_socket(struct session *s, struct call *c) {
    struct fs_request *r = &c->request;
    r->path_len = c->path ? (uint32_t)strlen(c->path) : 0;
    r->path2_len = c->path2 ? (uint32_t)strlen(c->path2) : 0;
    if (r->path_len > FS_MAX_PATH || r->path2_len > FS_MAX_PATH) return -ENAMETOOLONG;
    struct iovec parts[4] = {{r, sizeof *r},
                             {(void *)(uintptr_t)c->path, r->path_len},
                             {(void *)(uintptr_t)c->path2, r->path2_len},
                             {(void *)(uintptr_t)c->payload, c->payload_len}};
    size_t size = sizeof c->reply + (c->out_len > 8192 ? c->out_len : 8192);
    char small[sizeof c->reply + 8192], *body = size <= sizeof small ? small : malloc(size);
    if (!body) return -ENOMEM;
    int passed[MOST_PASSED], count = 0;
    uint64_t tag;
    pthread_mutex_lock(&s->talking);
    int problem = fs_send(s->socket, 1, parts, 4);
    ssize_t length = problem ? problem : fs_receive(s->socket, &tag, body, size, passed, &count);
    pthread_mutex_unlock(&s->talking);
    int64_t result = LOST;
    if (length >= (ssize_t)sizeof c->reply) {
        memcpy(&c->reply, body, sizeof c->reply);
        result = c->reply.result;
        size_t data = (size_t)length - sizeof c->reply;
        if (c->out && data > 0) memcpy(c->out, body + sizeof c->reply, data < c->out_len ? data : c->out_len);
    }
    if (body != small) free(body);
    if (r->op == FS_OPEN && result >= 0) {
        c->descriptor = count > 0 ? passed[--count] : placeholder(s->server, c->reply.value);
        if (c->descriptor < 0) result = c->descriptor;
    }
    while (count > 0) REAL(close)(passed[--count]);
    return result;
}
