#include "left.h"
#include "config.h"
#include "logscan.h"
#include "marker.h"
#include "stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cv_left_settle(const char *name, bool emptying, char *why, size_t room)
{
    struct cv_marker marker;
    struct cv_found  found;
    char             path[PATH_MAX], reason[PATH_MAX + 256] = "";

    if (!realpath(name, path))
        return 0; /* no such file: HDF5 says so */
    if (cv_marker_read(path, &marker)) {
        if (errno == EINVAL) /* its writer was killed before it acknowledged anything */
            cv_marker_remove(path, NULL);
        return 0;
    }
    bool here = !strcmp(marker.host, cv_host());
    if (here && marker.pid == (long)getpid())
        return 0; /* this process has the file open already */
    bool kept = here && !access(marker.folder, F_OK);
    if (emptying) {
        if (kept && cv_log_drop(marker.folder, &found, reason, sizeof reason) == CV_REPLAY_ALIVE)
            return 0; /* HDF5's own lock decides who may have the file */
        cv_marker_remove(path, marker.id);
        return 0;
    }
    if (!kept) {
        snprintf(why, room,
                 "unable to open file: name = '%s': data that a killed program wrote are in log %s on node %s%s: "
                 "run `tiercel cache replay` there, or `tiercel cache drop --file %s` to do without them",
                 name, marker.id, marker.host, here ? ", which is gone" : "", path);
        return -1;
    }
    if (!cv_config.replay) {
        if (!cv_log_look(marker.folder, &found, reason, sizeof reason) && found.alive)
            return 0;
        snprintf(why, room, "unable to open file: name = '%s': a killed program left data in log %s: run "
                 "`tiercel cache replay` first", name, marker.id);
        return -1;
    }
    switch (cv_log_replay(marker.folder, false, &found, reason, sizeof reason)) {
    case CV_REPLAY_DONE:
        CV_COUNT(replayed_logs, 1);
        return 0;
    case CV_REPLAY_ALIVE:
        return 0;
    default:
        snprintf(why, room, "unable to open file: name = '%s': a killed program left data in log %s, and %s: "
                 "see `tiercel cache inspect`", name, marker.id, reason);
        return -1;
    }
}
