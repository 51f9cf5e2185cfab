/* With LD_PRELOAD: whoever finds no `map` in a copy's folder hears of it late, threads later than the program itself. So
   what another does meanwhile to the folder of that name comes in between. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int late(int got, const char *path)
{
    const char *name = strrchr(path, '/');
    int         why  = errno;

    if (got < 0 && !strcmp(name ? name + 1 : path, "map"))
        usleep(syscall(SYS_gettid) == getpid() ? 200000 : 700000);
    errno = why;
    return got;
}

int open(const char *path, int flags, ...)
{
    va_list more;

    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    return late(REAL(open)(path, flags, mode), path);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;

    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    return late(REAL(openat)(folder, path, flags, mode), path);
}
