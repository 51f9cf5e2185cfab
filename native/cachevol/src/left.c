#include "left.h"
#include "config.h"
#include "logscan.h"
#include "marker.h"
#include "stats.h"
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the log is that a marker names. Only this user's own is ever read, or removed. */
enum whose { OURS, GONE, ANOTHERS };

static enum whose whose_is(const char *folder)
{
    int fd = cv_open_own(folder);

    if (fd < 0)
        return errno == ENOENT ? GONE : ANOTHERS;
    close(fd);
    return OURS;
}

/* Whether this very process has the log open. Its number alone does not tell: in a container the next program often has
   the one that the killed one had. */
static bool is_this_process(const struct cv_marker *marker)
{
    char control[PATH_MAX], name[PATH_MAX];
    bool found = false;

    if (marker->pid != (long)getpid() || !cv_join(control, marker->folder, "control"))
        return false;
    DIR *files = opendir("/proc/self/fd");
    if (!files)
        return true;
    for (struct dirent *file; !found && (file = readdir(files));) {
        ssize_t length = readlinkat(dirfd(files), file->d_name, name, sizeof name - 1);
        name[length < 0 ? 0 : length] = '\0';
        /* What a cleaner deleted says so behind its name. */
        size_t whole = strlen(control);
        found = !strncmp(name, control, whole) && (!name[whole] || !strcmp(name + whole, " (deleted)"));
    }
    closedir(files);
    return found;
}

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
    if (here && is_this_process(&marker))
        return 0; /* this process has the file open already */
    enum whose whose = here ? whose_is(marker.folder) : GONE;
    bool       kept  = whose == OURS;
    if (emptying) {
        if (kept && cv_log_drop(marker.folder, path, &found, reason, sizeof reason) == CV_REPLAY_ALIVE)
            return 0; /* HDF5's own lock decides who may have the file */
        cv_marker_remove(path, marker.id);
        return 0;
    }
    if (whose == ANOTHERS) {
        snprintf(why, room,
                 "unable to open file: name = '%s': another user's program left data in log %s on this node, or writes "
                 "it now: that user finishes it by opening the file or by `tiercel cache replay`; `tiercel cache drop "
                 "--file %s` does without them",
                 name, marker.id, path);
        return -1;
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
    switch (cv_log_replay(marker.folder, path, false, &found, reason, sizeof reason)) {
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
