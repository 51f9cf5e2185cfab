#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "data.h"
#include "filesystem.h"

/* Bytes that the rank's data file already holds on disk: overwriting them takes no new space. */
static int64_t credit(const struct data_run *run, bool *device)
{
    struct stat st;
    int64_t held = 0;
    if (!run->o->file_per_process && run->comm.rank != 0)
        return 0;
    char *path = data_path(run->o, run->comm.rank);
    if (path && stat(path, &st) == 0) {
        held = S_ISREG(st.st_mode) ? (int64_t)st.st_blocks * 512 : 0;
        *device = !S_ISREG(st.st_mode);
    }
    free(path);
    return held;
}

int space_check(struct data_run *run)
{
    const struct data_options *o = run->o;
    const struct comm *c = &run->comm;
    bool writes = false, device = false;
    for (int i = 0; i < o->phase_count; i++)
        writes = writes || o->phases[i].access == ACCESS_WRITE;
    if (!writes)
        return EXIT_DONE;

    int64_t held = credit(run, &device), devices = device;
    char *folder = strdup(o->path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        slash[slash == folder] = '\0';
    const char *where = slash ? folder : ".";
    bool local = filesystem_node_local(where);
    comm_reduce_int(c, &devices, 1, REDUCE_MAX);

    /* a file system of the node takes this node's share, any other one takes everything */
    int64_t credits = held, on_node = 0;
    comm_reduce_int(c, &credits, 1, REDUCE_SUM);
    for (int node = 0; node < run->layout.nodes; node++) {
        int64_t part = run->layout.node_of[c->rank] == node ? held : 0;
        comm_reduce_int(c, &part, 1, REDUCE_SUM);
        if (run->layout.node_of[c->rank] == node)
            on_node = part;
    }
    int tasks = local && o->file_per_process ? run->layout.tasks_on[run->layout.node_of[c->rank]] : c->size;
    double need = (double)data_bytes_per_task(o) * tasks -
                  (double)(local && o->file_per_process ? on_node : credits);

    struct failure refusal = {0};
    struct statvfs fs;
    if (!devices && need > 0 && statvfs(where, &fs) == 0) {
        double block = (double)fs.f_frsize, capacity = (double)fs.f_blocks * block;
        double used = capacity - (double)fs.f_bfree * block, available = (double)fs.f_bavail * block;
        if (need > available)
            failure_note(&refusal, "space", NULL, 0,
                         "needs %.0f more bytes, the file system has %.0f; write less (-b, -s) or free some", need,
                         available);
        else if (used + need > o->fill_limit * capacity)
            failure_note(&refusal, "space", NULL, 0,
                         "%.0f more bytes would fill the file system to %.1f %% of its %.0f bytes; at most %.1f %% "
                         "are allowed",
                         need, 100 * (used + need) / capacity, capacity, 100 * o->fill_limit);
    }
    free(folder);
    if (!failure_agree(&refusal, c, "prepare"))
        return EXIT_DONE;
    if (refusal.signal)
        return EXIT_DONE; /* the first phase will notice */
    return usage_error(c->rank == 0, "--max-bytes-fill", "%s", refusal.message);
}
