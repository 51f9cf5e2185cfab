#include "backend.h"

#include <stddef.h>
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
