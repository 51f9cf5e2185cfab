#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool cv_join(char path[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < PATH_MAX;
}

const char *cv_host(void)
{
    static char name[64];

    if (!name[0] && (gethostname(name, sizeof name - 1) || !name[0]))
        strcpy(name, "unknown");
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    return name;
}

const char *cv_boot(void)
{
    static char id[40];

    if (!id[0]) {
        int     fd  = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t got = fd < 0 ? -1 : read(fd, id, 36);
        if (fd >= 0)
            close(fd);
        if (got <= 0) /* without it, nothing of another process's is taken for sound */
            snprintf(id, sizeof id, "unknown-%ld-%llx", (long)getpid(), (unsigned long long)cv_now());
    }
    return id;
}

bool cv_boot_is_known(void)
{
    return strncmp(cv_boot(), "unknown", 7) != 0;
}

uint64_t cv_ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t cv_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t cv_process_start(pid_t pid)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    char *at = strrchr(text, ')'); /* the program's name may hold anything; the start is the 20th field after it */
    for (int field = 0; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

int cv_write_all(int fd, const void *data, size_t size, off_t at)
{
    const char *from = data;

    while (size > 0) {
        ssize_t done = pwrite(fd, from, size, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = ENOSPC;
            return -1;
        }
        from += done, at += done, size -= (size_t)done;
    }
    return 0;
}

ssize_t cv_read_all(int fd, void *data, size_t size, off_t at)
{
    size_t got = 0;

    while (got < size) {
        ssize_t done = pread(fd, (char *)data + got, size - got, at + (off_t)got);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        if (done == 0)
            break;
        got += (size_t)done;
    }
    return (ssize_t)got;
}

void cv_empty_folder(int folder)
{
    int  again   = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries) {
        if (again >= 0)
            close(again);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
}

void cv_remove_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    cv_empty_folder(fd);
    close(fd);
    rmdir(folder);
}

/* Among the threads of the process, for which the budget's lock is one. */
static pthread_mutex_t turn     = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t  watching = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&turn);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&turn);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

int cv_open_own(const char *folder)
{
    struct stat there;
    int         fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && (fstat(fd, &there) || there.st_uid != geteuid() || (there.st_mode & 022))) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* Makes `path` a folder of this user alone; a folder that somebody else put there is refused. */
static int own_folder(const char *path, char *why, size_t room)
{
    if (mkdir(path, 0700) && errno != EEXIST) {
        snprintf(why, room, "cannot make %s: %s", path, strerror(errno));
        return -1;
    }
    int fd = cv_open_own(path);
    if (fd < 0) {
        snprintf(why, room, "%s is not a folder that only its owner, this user, may write to", path);
        return -1;
    }
    close(fd);
    return 0;
}

/* Whether a group is this user's own: many systems give each one a group of his name, and a umask of 002. Where users share
   their first group, its members are others. */
static bool is_own_group(gid_t group)
{
    char          names[2][4096];
    struct passwd user, *is_user = NULL;
    struct group  named, *is_group = NULL;

    return group == getegid() && !getpwuid_r(geteuid(), &user, names[0], sizeof names[0], &is_user) && is_user &&
           !getgrgid_r(group, &named, names[1], sizeof names[1], &is_group) && is_group &&
           !strcmp(user.pw_name, named.gr_name);
}

/* Whether others may put another folder in the place of what lies in this one, between a look at it and its use as at any
   time. */
static bool others_may_replace_in(const char *folder)
{
    struct stat there;

    if (stat(folder, &there) || (there.st_mode & S_ISVTX))
        return false;
    return (there.st_mode & S_IWOTH) || ((there.st_mode & S_IWGRP) && !is_own_group(there.st_gid));
}

/* The same of the storage path (a real one) and all folders above it; that folder in `where`. */
static bool others_may_replace(const char *path, char where[PATH_MAX])
{
    snprintf(where, PATH_MAX, "%s", path);
    while (!others_may_replace_in(*where ? where : "/")) {
        char *last = strrchr(where, '/');
        if (!last)
            return false;
        *last = '\0';
    }
    if (!*where)
        strcpy(where, "/");
    return true;
}

static bool place(const char *path, char folder[PATH_MAX])
{
    char name[64];

    snprintf(name, sizeof name, "cachevol-%lu", (unsigned long)geteuid());
    return cv_join(folder, path, name);
}

int cv_store_find(const char *path, char folder[PATH_MAX])
{
    char real[PATH_MAX], where[PATH_MAX];

    if (!place(path, folder)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!realpath(path, real))
        return -1;
    if (others_may_replace(real, where)) {
        errno = EPERM;
        return -1;
    }
    int fd = cv_open_own(folder);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

int cv_store_open(struct cv_store *store, const char *path, bool shared, uint64_t limit, char *why, size_t room)
{
    char name[PATH_MAX], real[PATH_MAX];

    memset(store, 0, sizeof *store);
    store->budget = -1;
    store->limit  = limit;
    if (!realpath(path, real)) {
        snprintf(why, room, "the storage path %s cannot be used: %s", path, strerror(errno));
        return -1;
    }
    if (!place(real, store->folder)) {
        snprintf(why, room, "the storage path %s is too long", path);
        return -1;
    }
    if (others_may_replace(real, name)) {
        snprintf(why, room, "others may write to %s%s and replace what lies there: make it sticky (chmod +t), or name a "
                 "folder of your own %s", strcmp(name, real) ? "" : "the storage path ", name,
                 strcmp(name, real) ? "elsewhere" : "in it");
        return -1;
    }
    if (own_folder(store->folder, why, room))
        return -1;
    if (shared) {
        strcpy(name, store->folder);
        if (!cv_join(store->folder, name, cv_host()) || own_folder(store->folder, why, room))
            return -1;
    }
    if (strlen(store->folder) > PATH_MAX - 400) {
        snprintf(why, room, "the storage path %s is too long", path);
        return -1;
    }
    const char *parts[] = {"logs", "read"};
    for (int i = 0; i < 2; i++)
        if (!cv_join(name, store->folder, parts[i]) || own_folder(name, why, room))
            return -1;
    cv_join(name, store->folder, "budget");
    store->budget = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->budget < 0) {
        snprintf(why, room, "cannot use %s: %s", name, strerror(errno));
        return -1;
    }
    /* First of all that watches for forks, so that the others have come to rest when the budget is locked for one. */
    pthread_once(&watching, watch_forks);
    struct stat budget;
    if (!fstat(store->budget, &budget) && budget.st_size < (off_t)sizeof(uint64_t))
        cv_store_recount(store);
    return 0;
}

void cv_store_close(struct cv_store *store)
{
    if (store->budget >= 0)
        close(store->budget);
    store->budget = -1;
}

/* ---- The budget. It is read and written, not mapped: the file may be cut short by whoever cleans the folder. ---- */

/* Begins to look at the budget, alone among the threads and processes of the node. Returns the bytes that are taken. */
static uint64_t begin(struct cv_store *store)
{
    uint64_t used = 0;

    pthread_mutex_lock(&turn);
    while (flock(store->budget, LOCK_EX) && errno == EINTR)
        ;
    if (cv_read_all(store->budget, &used, sizeof used, 0) != (ssize_t)sizeof used)
        used = 0; /* a new file, or one cut short: the next count corrects it */
    return used;
}

/* Ends that; with `used`, the bytes are these from now on. */
static void end(struct cv_store *store, const uint64_t *used)
{
    if (used) /* where the file system is full, the next count corrects it */
        (void)!cv_write_all(store->budget, used, sizeof *used, 0);
    flock(store->budget, LOCK_UN);
    pthread_mutex_unlock(&turn);
}

static bool fits(const struct cv_store *store, uint64_t used, uint64_t bytes)
{
    return used + bytes >= used && used + bytes <= store->limit;
}

bool cv_store_take(struct cv_store *store, uint64_t bytes)
{
    uint64_t used = begin(store);
    bool     room = fits(store, used, bytes);

    used += bytes;
    end(store, room ? &used : NULL);
    return room;
}

void cv_store_give(struct cv_store *store, uint64_t bytes)
{
    if (!bytes)
        return;
    uint64_t used = begin(store);

    used = used > bytes ? used - bytes : 0;
    end(store, &used);
}

bool cv_store_has_room(struct cv_store *store, uint64_t bytes)
{
    uint64_t used = begin(store);

    end(store, NULL);
    return fits(store, used, bytes);
}

/* `reserved`: by the length of files, which logs reserve in whole segments; else by what is in them. */
static uint64_t taken_below(const char *folder, bool reserved)
{
    uint64_t bytes   = 0;
    DIR     *entries = opendir(folder);

    if (!entries)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        char inner[PATH_MAX];
        if (entry->d_name[0] == '.' || !cv_join(inner, folder, entry->d_name))
            continue;
        DIR *files = opendir(inner);
        if (!files)
            continue;
        for (struct dirent *file; (file = readdir(files));) {
            struct stat there;
            if (!fstatat(dirfd(files), file->d_name, &there, AT_SYMLINK_NOFOLLOW) && S_ISREG(there.st_mode))
                bytes += reserved ? (uint64_t)there.st_size : (uint64_t)there.st_blocks * 512;
        }
        closedir(files);
    }
    closedir(entries);
    return bytes;
}

void cv_store_recount(struct cv_store *store)
{
    char logs[PATH_MAX], copies[PATH_MAX];

    if (!cv_join(logs, store->folder, "logs") || !cv_join(copies, store->folder, "read"))
        return;
    begin(store);
    uint64_t used = taken_below(logs, true) + taken_below(copies, false);
    end(store, &used);
}
