/* With LD_PRELOAD: kills the process before its n-th call (KILL_AT, from 1) that changes something below the folder
   KILL_BELOW by name: rename, mkdir, unlinkat, rmdir, and files that are made. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void count(const char *path)
{
    static atomic_int calls;
    const char       *below = getenv("KILL_BELOW"), *at = getenv("KILL_AT");

    if (below && at && !strncmp(path, below, strlen(below)) && atomic_fetch_add(&calls, 1) + 1 == atoi(at))
        raise(SIGKILL);
}

static void count_in(int folder)
{
    char    link[64], path[4096];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    count(path);
}

int rename(const char *from, const char *to)
{
    count(from);
    return REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    count(path);
    return REAL(mkdir)(path, mode);
}

int rmdir(const char *path)
{
    count(path);
    return REAL(rmdir)(path);
}

int unlinkat(int folder, const char *name, int flags)
{
    count_in(folder);
    return REAL(unlinkat)(folder, name, flags);
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list more;
    mode_t  mode;

    va_start(more, flags);
    mode = (mode_t)va_arg(more, int);
    va_end(more);
    if (flags & O_CREAT)
        count_in(folder);
    return REAL(openat)(folder, name, flags, mode);
}
