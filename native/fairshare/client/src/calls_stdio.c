// stdio on served files. libc's streams call the kernel directly, so ours are made by fopencookie.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

struct cookie {
    int fd;
    bool keep;  // a standard stream: closing it leaves the descriptor
};

static ssize_t take(void *with, char *buffer, size_t size) { return read(((struct cookie *)with)->fd, buffer, size); }

static ssize_t give(void *with, const char *buffer, size_t size) {
    // A cookie's writer says 0 for an error, and writes all otherwise.
    size_t done = 0;
    while (done < size) {
        ssize_t now = write(((struct cookie *)with)->fd, buffer + done, size - done);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) return 0;
        done += (size_t)now;
    }
    return (ssize_t)done;
}

static int move(void *with, off64_t *offset, int whence) {
    off_t at = lseek(((struct cookie *)with)->fd, (off_t)*offset, whence);
    if (at < 0) return -1;
    *offset = at;
    return 0;
}

static int end(void *with) {
    struct cookie *cookie = with;
    int result = cookie->keep ? 0 : close(cookie->fd);
    free(cookie);
    return result;
}

// ---- which streams are ours: fileno has to answer for them ----
struct known {
    FILE *file;
    int fd;
    struct known *next;
};
static struct known *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fs_hold_streams(bool hold) { hold ? pthread_mutex_lock(&lock) : pthread_mutex_unlock(&lock); }

static void remember(FILE *file, int fd) {
    struct known *k = malloc(sizeof *k);
    if (!k) return;
    pthread_mutex_lock(&lock);
    *k = (struct known){file, fd, all};
    all = k;
    pthread_mutex_unlock(&lock);
}

static int known_fd(FILE *file, bool forget) {
    int fd = -1;
    if (!fs_on()) return fd;
    pthread_mutex_lock(&lock);
    for (struct known **at = &all; *at; at = &(*at)->next)
        if ((*at)->file == file) {
            struct known *k = *at;
            fd = k->fd;
            if (forget) {
                *at = k->next;
                free(k);
            }
            break;
        }
    pthread_mutex_unlock(&lock);
    return fd;
}

static FILE *stream(int fd, const char *mode, bool keep) {
    struct cookie *cookie = malloc(sizeof *cookie);
    if (!cookie) return NULL;
    *cookie = (struct cookie){fd, keep};
    FILE *file = fopencookie(cookie, mode, (cookie_io_functions_t){take, give, move, end});
    if (!file) {
        free(cookie);
        return NULL;
    }
    remember(file, fd);
    return file;
}

static int flags_of(const char *mode) {
    int flags = 0;
    bool both = false;
    for (const char *c = mode + 1; *c && *c != ','; c++) {
        if (*c == '+') both = true;
        if (*c == 'e') flags |= O_CLOEXEC;
        if (*c == 'x') flags |= O_EXCL;
    }
    switch (mode[0]) {
        case 'r': return flags | (both ? O_RDWR : O_RDONLY);
        case 'w': return flags | O_CREAT | O_TRUNC | (both ? O_RDWR : O_WRONLY);
        case 'a': return flags | O_CREAT | O_APPEND | (both ? O_RDWR : O_WRONLY);
        default: return -1;
    }
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode) {
    struct route route;
    int served = fs_route_file(AT_FDCWD, path, &route);
    if (served < 0) return NULL;
    if (!served) return REAL(fopen)(fs_past(&route, path), mode);
    int flags = flags_of(mode);
    if (flags < 0) {
        errno = EINVAL;
        return NULL;
    }
    int fd = fs_open(&route, flags, 0666);
    if (fd < 0) return NULL;
    FILE *file = stream(fd, mode, false);
    if (!file) fs_close(fd);
    return file;
}
FILE *fopen64(const char *restrict path, const char *restrict mode) ALIAS(fopen);

EXPORT FILE *fdopen(int fd, const char *mode) {
    struct description *d = fs_get(fd);
    if (!d) return REAL(fdopen)(fd, mode);
    if (flags_of(mode) < 0) {
        errno = EINVAL;
        return NULL;
    }
    if (flags_of(mode) & O_APPEND) fcntl(fd, F_SETFL, d->flags | O_APPEND);
    return stream(fd, mode, false);
}

// A stream that exists cannot be turned into one of ours, but for the standard ones.
EXPORT FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict file) {
    struct route route;
    int served = path ? fs_route_file(AT_FDCWD, path, &route) : 0;
    int fd = known_fd(file, false);
    if (!served && fd < 0) return REAL(freopen)(path ? fs_past(&route, path) : path, mode, file);
    int standard = file == stdin ? 0 : file == stdout ? 1 : file == stderr ? 2 : -1;
    if (served < 0 || standard < 0 || !path) {
        if (served >= 0) errno = EOPNOTSUPP;
        return NULL;
    }
    int flags = flags_of(mode);
    if (flags < 0) {
        errno = EINVAL;
        return NULL;
    }
    fflush(file);
    int opened = open(path, flags, 0666);
    if (opened < 0) return NULL;
    dup2(opened, standard);  // changes the standard stream where the new file is ours, or the old one was
    close(opened);
    return standard == 0 ? stdin : standard == 1 ? stdout : stderr;
}
FILE *freopen64(const char *restrict path, const char *restrict mode, FILE *restrict file) ALIAS(freopen);

EXPORT int fclose(FILE *file) {
    if (file) known_fd(file, true);
    return REAL(fclose)(file);
}

EXPORT int fileno(FILE *file) {
    int fd = known_fd(file, false);
    return fd >= 0 ? fd : REAL(fileno)(file);
}

EXPORT int fileno_unlocked(FILE *file) {
    int fd = known_fd(file, false);
    return fd >= 0 ? fd : REAL(fileno_unlocked)(file);
}

// libc's own would write to the descriptor by itself.
static int print(int fd, const char *format, va_list list) {
    char *text;
    int length = vasprintf(&text, format, list);
    if (length < 0) return -1;
    for (int done = 0; done < length;) {
        ssize_t now = write(fd, text + done, (size_t)(length - done));
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) {
            length = -1;
            break;
        }
        done += (int)now;
    }
    free(text);
    return length;
}

EXPORT int vdprintf(int fd, const char *restrict format, va_list list) {
    return fs_get(fd) ? print(fd, format, list) : REAL(vdprintf)(fd, format, list);
}

EXPORT int dprintf(int fd, const char *restrict format, ...) {
    va_list list;
    va_start(list, format);
    int result = vdprintf(fd, format, list);
    va_end(list);
    return result;
}

int __vdprintf_chk(int fd, int flag, const char *format, va_list list);
EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list list) {
    return fs_get(fd) ? print(fd, format, list) : REAL(__vdprintf_chk)(fd, flag, format, list);
}

int __dprintf_chk(int fd, int flag, const char *format, ...);
EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int result = __vdprintf_chk(fd, flag, format, list);
    va_end(list);
    return result;
}

// ---- the standard streams ----
// Descriptor 0, 1 or 2 became a served file, or stopped being one (a shell's redirection, or what a
// program inherited): the pointer of that name is set to a stream that reaches it.
static FILE *original[3], *replaced[3];

void fs_standard_changed(int fd) {
    FILE **const pointer[3] = {&stdin, &stdout, &stderr};
    static const char *const mode[3] = {"r", "w", "w"};
    if (fd < 0 || fd > 2) return;
    if (!original[fd]) original[fd] = *pointer[fd];
    if (!fs_get(fd)) {
        if (replaced[fd] && *pointer[fd] == replaced[fd]) {
            fflush(replaced[fd]);
            *pointer[fd] = original[fd];
        }
        return;
    }
    if (fd > 0) fflush(*pointer[fd]);
    if (!replaced[fd]) {
        replaced[fd] = stream(fd, mode[fd], true);
        if (replaced[fd] && fd == 2) setvbuf(replaced[fd], NULL, _IONBF, 0);
    }
    if (replaced[fd]) *pointer[fd] = replaced[fd];
}
