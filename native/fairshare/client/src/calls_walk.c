// libc's walks through folders, which open and look by themselves: glob, nftw, fts, wordexp.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>

#include "client.h"
#include "real.h"

// ---- glob: it can be told what to open and look with ----
static void *glob_open(const char *path) { return opendir(path); }
static struct dirent *glob_read(void *dir) { return readdir(dir); }
static void glob_close(void *dir) { closedir(dir); }
static int glob_stat(const char *restrict path, struct stat *restrict st) { return stat(path, st); }
static int glob_lstat(const char *restrict path, struct stat *restrict st) { return lstat(path, st); }

EXPORT int glob(const char *restrict pattern, int flags, int (*problem)(const char *, int), glob_t *restrict found) {
    if (!fs_on() || flags & GLOB_ALTDIRFUNC) return REAL(glob)(pattern, flags, problem, found);
    found->gl_opendir = glob_open;
    found->gl_readdir = glob_read;
    found->gl_closedir = glob_close;
    found->gl_stat = glob_stat;
    found->gl_lstat = glob_lstat;
    int result = REAL(glob)(pattern, flags | GLOB_ALTDIRFUNC, problem, found);
    found->gl_flags &= ~GLOB_ALTDIRFUNC;
    return result;
}

// ---- nftw and ftw ----
struct walk {
    int (*with_place)(const char *, const struct stat *, int, struct FTW *);
    int (*plain)(const char *, const struct stat *, int);
    int flags;
    dev_t device;
    char path[PATH_MAX];
    ino_t *folders;  // that were entered, where links are followed: each is entered once
    size_t count, room;
};

// Whether a folder is new to a walk that follows links.
static bool unseen(struct walk *w, ino_t ino) {
    for (size_t i = 0; i < w->count; i++)
        if (w->folders[i] == ino) return false;
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 64;
        ino_t *larger = realloc(w->folders, room * sizeof *larger);
        if (!larger) return false;
        w->folders = larger;
        w->room = room;
    }
    w->folders[w->count++] = ino;
    return true;
}

static int visit(struct walk *w, const struct stat *st, int kind, int base, int level) {
    if (w->plain) return w->plain(w->path, st, kind == FTW_SLN ? FTW_NS : kind);
    return w->with_place(w->path, st, kind, &(struct FTW){base, level});
}

static int step(struct walk *w, int base, int level);

static int inside(struct walk *w, DIR *dir, int level) {
    size_t length = strlen(w->path);
    struct dirent *entry;
    int result = 0;
    while (result == 0 && (errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        size_t slash = length > 0 && w->path[length - 1] == '/' ? 0 : 1;
        if (length + slash + strlen(entry->d_name) >= sizeof w->path) {
            errno = ENAMETOOLONG;
            result = -1;
            break;
        }
        if (slash) w->path[length] = '/';
        strcpy(w->path + length + slash, entry->d_name);
        result = step(w, (int)(length + slash), level + 1);
        w->path[length] = '\0';
        if (w->flags & FTW_ACTIONRETVAL && result == FTW_SKIP_SUBTREE) result = 0;
        if (w->flags & FTW_ACTIONRETVAL && result == FTW_SKIP_SIBLINGS) {
            result = 0;
            break;
        }
    }
    return result;
}

static int step(struct walk *w, int base, int level) {
    struct stat st;
    bool physical = w->flags & FTW_PHYS;
    int kind = FTW_F;
    if ((physical ? lstat : stat)(w->path, &st) < 0) {
        if (!physical && lstat(w->path, &st) == 0 && S_ISLNK(st.st_mode)) {
            kind = FTW_SLN;
        } else if (level == 0 || (errno != EACCES && errno != ENOENT)) {
            return -1;
        } else {
            memset(&st, 0, sizeof st);
            kind = FTW_NS;
        }
    } else if (S_ISLNK(st.st_mode)) {
        kind = FTW_SL;
    } else if (S_ISDIR(st.st_mode)) {
        kind = FTW_D;
    }
    if (level == 0) w->device = st.st_dev;
    if (kind != FTW_NS && w->flags & FTW_MOUNT && st.st_dev != w->device) return 0;
    if (kind != FTW_D) return visit(w, &st, kind, base, level);
    if (!physical && !unseen(w, st.st_ino)) return 0;
    DIR *dir = opendir(w->path);
    if (!dir) return errno == EACCES ? visit(w, &st, FTW_DNR, base, level) : -1;
    bool last = w->flags & FTW_DEPTH;
    int result = last ? 0 : visit(w, &st, FTW_D, base, level);
    if (result == 0) result = inside(w, dir, level);
    int problem = errno;
    closedir(dir);
    errno = problem;
    return result == 0 && last ? visit(w, &st, FTW_DP, base, level) : result;
}

static int begin(struct walk *w, const char *path) {
    if (w->flags & FTW_CHDIR) return fs_fail(EOPNOTSUPP);
    if (snprintf(w->path, sizeof w->path, "%s", path) >= (int)sizeof w->path) return fs_fail(ENAMETOOLONG);
    size_t length = strlen(w->path);
    while (length > 1 && w->path[length - 1] == '/') w->path[--length] = '\0';
    const char *slash = strrchr(w->path, '/');
    int result = step(w, slash && slash[1] ? (int)(slash + 1 - w->path) : 0, 0), problem = errno;
    free(w->folders);
    errno = problem;
    return w->flags & FTW_ACTIONRETVAL && (result == FTW_SKIP_SUBTREE || result == FTW_SKIP_SIBLINGS) ? 0 : result;
}

EXPORT int nftw(const char *path, __nftw_func_t call, int most, int flags) {
    struct route route;
    int served = fs_route(AT_FDCWD, path, &route);
    if (!served) return REAL(nftw)(path, call, most, flags);
    struct walk w = {.with_place = call, .flags = flags};
    return served < 0 ? -1 : begin(&w, path);
}

EXPORT int ftw(const char *path, __ftw_func_t call, int most) {
    struct route route;
    int served = fs_route(AT_FDCWD, path, &route);
    if (!served) return REAL(ftw)(path, call, most);
    struct walk w = {.plain = call};
    return served < 0 ? -1 : begin(&w, path);
}

// ---- refused: their state is libc's alone ----
static bool any_served(char *const *paths) {
    struct route route;
    for (; fs_on() && *paths; paths++)
        if (fs_route(AT_FDCWD, *paths, &route)) return true;
    return false;
}

EXPORT FTS *fts_open(char *const *paths, int flags, int (*order)(const FTSENT **, const FTSENT **)) {
    if (!any_served(paths)) return REAL(fts_open)(paths, flags, order);
    errno = EOPNOTSUPP;
    return NULL;
}

// Its words may be patterns that it looks up by itself. It has no errno, but says WRDE_NOSPACE.
EXPORT int wordexp(const char *restrict words, wordexp_t *restrict out, int flags) {
    bool pattern = strpbrk(words, "*?[") != NULL;
    if (!fs_on() || !pattern || !(fs_cwd() || strstr(words, fs_config.prefix))) return REAL(wordexp)(words, out, flags);
    errno = EOPNOTSUPP;
    return WRDE_NOSPACE;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
#pragma GCC diagnostic ignored "-Wmissing-attributes"
int glob64(const char *restrict, int, int (*)(const char *, int), glob64_t *restrict) ALIAS(glob);
int nftw64(const char *, __nftw64_func_t, int, int) ALIAS(nftw);
int ftw64(const char *, __ftw64_func_t, int) ALIAS(ftw);
FTS64 *fts64_open(char *const *, int, int (*)(const FTSENT64 **, const FTSENT64 **)) ALIAS(fts_open);
#pragma GCC diagnostic pop
