/* With LD_PRELOAD: leases are refused, as to whoever does not own the file, and as on file systems without them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

int fcntl(int file, int what, ...)
{
    va_list more;

    va_start(more, what);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (what == F_SETLEASE) {
        errno = EACCES;
        return -1;
    }
    return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl"))(file, what, argument);
}
