#include "session.h"
#include "config.h"
#include "fill.h"

#include <stdio.h>
#include <sys/statvfs.h>

static struct cv_store store;
static enum { UNTRIED, OPEN, NONE } state;

void cv_session_configure(const char *file)
{
    char why[PATH_MAX + 256];

    if (cv_config_load(file, why, sizeof why)) {
        fprintf(stderr, "cachevol: %s: nothing is cached\n", why);
        cv_config.write = cv_config.read = false;
    }
}

struct cv_store *cv_session_store(void)
{
    char           why[PATH_MAX + 256];
    struct statvfs space;

    if (state != UNTRIED)
        return state == OPEN ? &store : NULL;
    state = NONE;
    if (!cv_config.path[0]) {
        fprintf(stderr, "cachevol: HDF5_CACHE_STORAGE_PATH is not set: nothing is cached\n");
        return NULL;
    }
    uint64_t limit = cv_config.size;
    if (!limit && !statvfs(cv_config.path, &space))
        limit = (uint64_t)space.f_bavail * space.f_frsize / 2;
    if (cv_store_open(&store, cv_config.path, cv_config.global, limit, why, sizeof why)) {
        fprintf(stderr, "cachevol: %s: nothing is cached\n", why);
        return NULL;
    }
    state = OPEN;
    if (cv_config.read)
        cv_fill_sweep(&store);
    return &store;
}
