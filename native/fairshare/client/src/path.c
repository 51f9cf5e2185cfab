// Which paths are served, and what they are called on the server.
//
// A path is served when it lies below the prefix by its text: absolute, or joined with the working
// directory (which may itself be a served one) or with a served directory descriptor.
#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real.h"

static pthread_mutex_t cwd_lock = PTHREAD_MUTEX_INITIALIZER;
static char cwd_served[PATH_MAX];  // of the server, "" where the working directory is an ordinary one
static char cwd_real[PATH_MAX];    // the ordinary one

void fs_hold_paths(bool hold) { hold ? pthread_mutex_lock(&cwd_lock) : pthread_mutex_unlock(&cwd_lock); }

static bool below_prefix(const char *path) {
    return strncmp(path, fs_config.prefix, fs_config.prefix_len) == 0 &&
           (path[fs_config.prefix_len] == '/' || path[fs_config.prefix_len] == '\0');
}

// Copy `path` (absolute) without "//" and "/./". Dots that go up are taken literally only where `up` says
// so. Keeps a slash at the end. Returns false when it does not fit.
static bool clean(const char *path, bool up, char *out, size_t size) {
    size_t n = 0;
    const char *p = path;
    while (*p) {
        while (*p == '/') p++;
        size_t length = strcspn(p, "/");
        if (length == 0) break;
        if (length == 1 && p[0] == '.' && p[1]) {  // at the end it stays: rmdir("a/.") is not rmdir("a")
            p++;
            continue;
        }
        if (up && length == 2 && p[0] == '.' && p[1] == '.') {
            while (n > 0 && out[--n] != '/') continue;
            p += 2;
            continue;
        }
        if (n + length + 2 > size) return false;
        out[n++] = '/';
        memcpy(out + n, p, length);
        n += length;
        p += length;
    }
    if (n > 0 && path[strlen(path) - 1] == '/') {
        if (n + 2 > size) return false;
        if (out[n - 1] != '/') out[n++] = '/';
    }
    if (n == 0) out[n++] = '/';
    out[n] = '\0';
    return true;
}

bool fs_goes_up(const char *path) {
    for (const char *p = path; (p = strstr(p, "..")); p += 2)
        if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0')) return true;
    return false;
}

// Where the server says that a path from its root leads; 0 or -errno.
static int resolve(struct description *at, const char *path, char out[PATH_MAX]) {
    struct call c = {.request.op = FS_RESOLVE, .at = at, .path = path, .out = out, .out_len = PATH_MAX - 1};
    int64_t length = fs_do(&c);
    if (length < 0) return (int)length;
    out[length] = '\0';
    return 0;
}

// Whether a path below the prefix goes up from the root of the served tree; then `text` is what is left from there.
// Names may be links: where a ".." leads that may leave, the server is asked.
static bool leaves(char text[PATH_MAX]) {
    char begin[PATH_MAX], real[PATH_MAX];
    char *rest = text + fs_config.prefix_len;
    int depth = 0;
    for (char *p = rest; *p;) {
        while (*p == '/') p++;
        size_t length = strcspn(p, "/");
        bool up = length == 2 && p[0] == '.' && p[1] == '.';
        if (up && depth == 0) {
            snprintf(begin, sizeof begin, "%.*s", (int)(p - rest), rest);
            bool root = strspn(begin, "/") == strlen(begin);
            if (!root && resolve(NULL, begin, real) < 0) return false;  // the server will say why
            root = root || strcmp(real, "/") == 0;
            if (snprintf(begin, sizeof begin, "%s/%s", root ? "" : real, p) >= (int)(sizeof begin - fs_config.prefix_len))
                return false;
            strcpy(rest, begin);
            if (root) return true;
            p = rest;
            continue;
        }
        depth += up ? -1 : length > 0;
        p += length;
    }
    return false;
}

// Of several servers each knows its own names alone, and what a path goes through may be another's than what it comes
// to. So each ".." is resolved where it is; one at the end stays, unless it is the root (names of folders cannot be
// taken away so).
static void find_home(char path[PATH_MAX]) {
    char begin[PATH_MAX], real[PATH_MAX];
    for (char *up = path; (up = strstr(up, "/.."));) {
        char *rest = up + 3;
        if (*rest && *rest != '/') {
            up = rest;
            continue;
        }
        snprintf(begin, sizeof begin, "%.*s", (int)(rest - path), path);
        if (resolve(NULL, begin, real) < 0) return;  // the server that is asked will say why
        bool root = strcmp(real, "/") == 0;
        if (!root && !*rest) return;
        if (snprintf(begin, sizeof begin, "%s%s", root ? "" : real, *rest ? rest : "/.") >= (int)sizeof begin) return;
        up = strcpy(path, begin);
    }
}

// An absolute path of this machine: served or not.
static int route_absolute(const char *path, struct route *route) {
    char text[PATH_MAX];
    bool up = fs_goes_up(path);
    if (!up && !below_prefix(path) && !(path[0] == '/' && (strstr(path, "//") || strstr(path, "/./"))))
        return 0;
    if (!clean(path, false, text, sizeof text)) {
        if (!below_prefix(path)) return 0;
        errno = ENAMETOOLONG;
        return -1;
    }
    if (up) {
        // The kernel walks `..` after following links; so does the server, as long as the path stays in its tree.
        char flat[PATH_MAX];
        bool left = below_prefix(text) && leaves(text);
        if (left || !below_prefix(text)) {
            if (!clean(text, true, flat, sizeof flat)) return 0;
            route->outside = left && !below_prefix(flat);
            strcpy(route->outside ? route->path : text, flat);
        }
    }
    if (route->outside || !below_prefix(text)) return 0;
    const char *rest = text + fs_config.prefix_len;
    strcpy(route->path, *rest ? rest : "/");
    if (up && fs_config.servers > 1) find_home(route->path);
    route->at = NULL;
    return 1;
}

static int join(const char *base, const char *path, struct route *route) {
    char text[PATH_MAX];
    if (snprintf(text, sizeof text, "%s/%s", base, path) >= (int)sizeof text) return fs_fail(ENAMETOOLONG);
    return route_absolute(text, route);
}

// A path from an ordinary folder can lead into the served tree where it goes up, or names a part of the prefix.
static int route_from(int fd, const char *path, struct route *route) {
    while (path[0] == '.' && path[1] == '/') path += 2;
    size_t length = strcspn(path, "/");
    char part[NAME_MAX + 3], link[64], folder[PATH_MAX];
    if (length == 0 || length > NAME_MAX) return 0;
    snprintf(part, sizeof part, "/%.*s", (int)length, path);
    if (!fs_goes_up(path) && !strstr(fs_config.prefix, part)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = REAL(readlink)(link, folder, sizeof folder - 1);
    if (got <= 0 || folder[0] != '/') return 0;
    folder[got] = '\0';
    return join(folder, path, route);
}

int fs_route(int fd, const char *path, struct route *route) {
    route->outside = false;
    if (!fs_on() || !path) return 0;
    if (path[0] == '/') return route_absolute(path, route);
    if (fd != AT_FDCWD) {
        struct description *d = fs_get(fd);
        if (!d) return route_from(fd, path, route);
        if (!d->directory) {
            if (path[0] == '\0') return 0;
            errno = ENOTDIR;
            return -1;
        }
        if (d->path && fs_goes_up(path)) {
            char base[PATH_MAX];
            if (fs_absolute(d->path, base, sizeof base) < 0) return -1;
            int inside = join(base, path, route);
            if (inside <= 0 || fs_config.servers > 1) return inside;
        }
        if (strlen(path) >= sizeof route->path) return fs_fail(ENAMETOOLONG);
        if (fs_config.servers > 1 && d->path && d->path[0] == '/' && d->path[1] == '\0') {
            // The root is of all servers: what lies in it is found by its path.
            if (snprintf(route->path, sizeof route->path, "/%s", path) >= (int)sizeof route->path) return fs_fail(ENAMETOOLONG);
            route->at = NULL;
            return 1;
        }
        strcpy(route->path, path);
        route->at = d;
        return 1;
    }
    char folder[PATH_MAX], base[PATH_MAX];
    pthread_mutex_lock(&cwd_lock);
    bool served = cwd_served[0] != '\0';
    strcpy(folder, served ? cwd_served : cwd_real);
    pthread_mutex_unlock(&cwd_lock);
    if (served) {
        if (path[0] == '\0') return fs_fail(ENOENT);
        return fs_absolute(folder, base, sizeof base) < 0 ? -1 : join(base, path, route);
    }
    // An ordinary directory above the prefix, or a way out of one beside it.
    size_t length = strlen(folder);
    bool above = length == 1 ||
                 (strncmp(fs_config.prefix, folder, length) == 0 && fs_config.prefix[length] == '/');
    return path[0] && (above || fs_goes_up(path)) ? join(folder, path, route) : 0;
}

// The number at the end of a path that names an open file of this process; -1: none.
static int number_in(const char *path) {
    static const char *const named[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (int fd = 0; fd < 3; fd++)
        if (strcmp(path, named[fd]) == 0) return fd;
    char own[32];
    snprintf(own, sizeof own, "/proc/%d/fd/", getpid());
    const char *const folders[] = {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", own};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0) continue;
        char *end;
        long number = strtol(path + length, &end, 10);
        bool digits = path[length] >= '0' && path[length] <= '9' && !*end && number < fs_max_descriptors();
        return digits ? (int)number : -1;
    }
    return -1;
}

struct description *fs_by_number(const char *path) {
    if (!fs_on() || !path || (strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0)) return NULL;
    return fs_get(number_in(path));
}

int fs_route_file(int fd, const char *path, struct route *route) {
    struct description *d = fs_by_number(path);
    if (!d) return fs_route(fd, path, route);
    route->at = d;
    route->outside = false;
    route->path[0] = '\0';
    return 1;
}

int fs_absolute(const char *served, char *out, size_t size) {
    bool root = served[0] == '/' && served[1] == '\0';
    if (snprintf(out, size, "%s%s", fs_config.prefix, root ? "" : served) >= (int)size) return fs_fail(ENAMETOOLONG);
    return 0;
}

const char *fs_cwd(void) { return cwd_served[0] ? cwd_served : NULL; }

void fs_cwd_init(void) {
    if (!REAL(getcwd)(cwd_real, sizeof cwd_real)) strcpy(cwd_real, "/");
    // The working directory that the program before exec had.
    const char *inherited = getenv("FAIRSHARE_CWD");
    if (inherited && inherited[0] == '/' && strlen(inherited) < sizeof cwd_served)
        strcpy(cwd_served, inherited);
}

// While the working directory is a served one, the kernel's is a folder in which nothing can be found or made by any
// name that programs use: a call that nobody intercepts fails, instead of acting on the folder that was left.
static void park(void) {
    if (REAL(chdir)("/proc/self/map_files") < 0) (void)!REAL(chdir)("/proc/self/fdinfo");
}

static void set_cwd(const char *served) {
    pthread_mutex_lock(&cwd_lock);
    if (served) {
        park();
        snprintf(cwd_served, sizeof cwd_served, "%s", served);
        setenv("FAIRSHARE_CWD", served, 1);
    } else {
        cwd_served[0] = '\0';
        unsetenv("FAIRSHARE_CWD");
        if (!REAL(getcwd)(cwd_real, sizeof cwd_real)) strcpy(cwd_real, "/");
    }
    pthread_mutex_unlock(&cwd_lock);
}

static int enter(struct description *at, const char *path) {
    char real[PATH_MAX];
    struct fs_attributes a;
    if (fs_attributes_at(at, path, true, &a) < 0) return -1;
    if ((a.mode & S_IFMT) != S_IFDIR) return fs_fail(ENOTDIR);
    struct call may = {.request = {.op = FS_ACCESS, .mode = X_OK}, .at = at, .path = path};
    if (fs_answer(fs_do(&may)) < 0) return -1;
    int problem = resolve(at, path, real);
    if (problem < 0) return fs_answer(problem);
    set_cwd(real);
    return 0;
}

EXPORT int chdir(const char *path) {
    struct route route;
    int served = fs_route_file(AT_FDCWD, path, &route);
    if (served < 0) return -1;
    if (served) return enter(route.at, route.path);
    int result = REAL(chdir)(fs_past(&route, path));
    if (result == 0 && fs_on()) set_cwd(NULL);
    return result;
}

EXPORT int fchdir(int fd) {
    struct description *d = fs_get(fd);
    if (d) {
        if (!d->directory) return fs_fail(ENOTDIR);
        return enter(d, ".");
    }
    int result = REAL(fchdir)(fd);
    if (result == 0 && fs_on()) set_cwd(NULL);
    return result;
}

EXPORT char *getcwd(char *buffer, size_t size) {
    if (!fs_on() || !fs_cwd()) return REAL(getcwd)(buffer, size);
    char text[PATH_MAX];
    if (fs_absolute(cwd_served, text, sizeof text) < 0) return NULL;
    size_t length = strlen(text) + 1;
    if (!buffer) {
        if (size && size < length) {
            errno = ERANGE;
            return NULL;
        }
        char *copy = malloc(size > length ? size : length);
        return copy ? memcpy(copy, text, length) : NULL;
    }
    if (size < length) {
        errno = size ? ERANGE : EINVAL;
        return NULL;
    }
    return memcpy(buffer, text, length);
}

char *__getcwd_chk(char *buffer, size_t size, size_t room);
EXPORT char *__getcwd_chk(char *buffer, size_t size, size_t room) {
    if (size > room) abort();
    return getcwd(buffer, size);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
EXPORT char *getwd(char *buffer) {
    return fs_on() && fs_cwd() ? getcwd(buffer, PATH_MAX) : REAL(getwd)(buffer);
}
#pragma GCC diagnostic pop

EXPORT char *get_current_dir_name(void) { return getcwd(NULL, 0); }

// ---- symbolic links ----
// Absolute links into the prefix are kept from the root of the served tree. One that leads elsewhere
// cannot be followed by a server; it is kept under a name that no server has, and shown as it was.
static const char OUTSIDE[] = "/.fairshare-outside";

int fs_link_text(const char *text, char *out, size_t size) {
    int length;
    if (text[0] != '/')
        length = snprintf(out, size, "%s", text);
    else if (below_prefix(text))
        length = snprintf(out, size, "%s", text[fs_config.prefix_len] ? text + fs_config.prefix_len : "/");
    else
        length = snprintf(out, size, "%s%s", OUTSIDE, text);
    if (length >= (int)size || length > FS_MAX_PATH) return fs_fail(ENAMETOOLONG);
    return 0;
}

void fs_link_shown(const char *text, char *out, size_t size) {
    size_t mark = sizeof OUTSIDE - 1;
    if (strncmp(text, OUTSIDE, mark) == 0 && text[mark] == '/')
        snprintf(out, size, "%s", text + mark);
    else if (text[0] == '/')
        snprintf(out, size, "%s%s", fs_config.prefix, text[1] ? text : "");
    else
        snprintf(out, size, "%s", text);
}
