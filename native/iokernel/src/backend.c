#include "backend.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

const struct backend *const backends[] = {
    &backend_posix,
    &backend_uring,
#ifdef IOKERNEL_MPI
    &backend_mpiio,
#endif
    &backend_hdf5,
    NULL,
};

const struct backend *backend_find(const char *api, int queue_depth)
{
    for (const struct backend *const *b = backends; *b; b++)
        if (!(*b)->hidden && strcasecmp((*b)->name, api) == 0)
            return *b == &backend_posix && queue_depth > 1 ? &backend_uring : *b;
    return NULL;
}

int error_in_words(const char *text)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, ENOENT, EISDIR, EROFS, ESTALE, EMFILE, EIO};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strstr(text, strerror(errors[i])))
            return errors[i];
    return 0;
}
