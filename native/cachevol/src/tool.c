/* cachevol-log: what killed programs left staged. One JSON object a line; exit code 0, or 1 where a log
   stays that could not be replayed or dropped, or 2 for a mistake in the command line.

     cachevol-log inspect STORAGE_PATH
     cachevol-log replay  STORAGE_PATH [--log ID] [--file BASE] [--force]
     cachevol-log drop    STORAGE_PATH [--log ID] [--file BASE]                                              */
#include "logscan.h"
#include "marker.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wish {
    const char *verb, *storage, *log, *file;
    bool        force, found;
};

static void quoted(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    putchar('"');
}

static void report(const char *folder, const char *state, const struct cv_found *found, const char *why)
{
    printf("{\"log\": ");
    quoted(strrchr(folder, '/') + 1);
    printf(", \"state\": \"%s\", \"file\": ", state);
    quoted(found->control.path);
    printf(", \"host\": ");
    quoted(found->control.host);
    printf(", \"pid\": %lu, \"records\": %lu, \"bytes\": %lu, \"migrated\": %lu, \"created\": %.3f, \"left_out\": %lu, \"torn\": %s, "
           "\"reason\": ",
           (unsigned long)found->control.pid, (unsigned long)found->records, (unsigned long)found->bytes,
           (unsigned long)found->control.done, (double)found->control.created / 1e9,
           (unsigned long)found->left_out, found->torn ? "true" : "false");
    quoted(why);
    printf("}\n");
}

static int one_log(struct wish *wish, const char *folder)
{
    struct cv_found found;
    char            why[PATH_MAX + 256] = "";

    int  unread  = cv_log_look(folder, &found, why, sizeof why);
    bool chosen  = (!wish->log || !strcmp(wish->log, strrchr(folder, '/') + 1)) &&
                  (!wish->file || (!unread && !strcmp(wish->file, found.control.path)));
    if (!chosen)
        return 0;
    wish->found = true;
    if (!strcmp(wish->verb, "inspect")) {
        report(folder, unread ? "empty" : found.alive ? "alive" : found.damaged ? "damaged" : "left", &found, why);
        return 0;
    }
    if (unread && !strcmp(wish->verb, "replay") && cv_log_sweep(folder)) {
        report(folder, "replayed", &found, "its program was killed before it staged anything");
        return 0;
    }
    *why                  = '\0';
    enum cv_replayed done = !strcmp(wish->verb, "drop")
                                ? cv_log_drop(folder, NULL, &found, why, sizeof why)
                                : cv_log_replay(folder, NULL, wish->force, &found, why, sizeof why);
    const char *good = !strcmp(wish->verb, "drop") ? "dropped" : "replayed";
    report(folder, done == CV_REPLAY_DONE ? good : done == CV_REPLAY_ALIVE ? "alive" : "refused", &found, why);
    return done == CV_REPLAY_REFUSED;
}

static int logs_in(struct wish *wish, const char *store)
{
    char logs[PATH_MAX], folder[PATH_MAX];
    int  bad = 0;
    DIR *entries = cv_join(logs, store, "logs") ? opendir(logs) : NULL;

    if (!entries)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.' && cv_join(folder, logs, entry->d_name))
            bad |= one_log(wish, folder);
    closedir(entries);
    return bad;
}

/* A file of which this user has no log: its marker is all that can be dropped. */
static int drop_marker(const char *file)
{
    struct cv_marker marker;
    struct cv_found  found;
    char             why[PATH_MAX + 256];

    if (cv_marker_read(file, &marker))
        return 0;
    bool ours = !cv_log_look(marker.folder, &found, why, sizeof why) && !strcmp(found.control.path, file);
    if (ours || cv_marker_remove(file, marker.id))
        return 0;
    memset(&found, 0, sizeof found);
    snprintf(found.control.path, sizeof found.control.path, "%s", file);
    snprintf(found.control.host, sizeof found.control.host, "%s", marker.host);
    found.control.pid = (uint64_t)marker.pid;
    snprintf(why, sizeof why, "no log of this user's for it is here; the marker named one on node %.60s", marker.host);
    report(marker.folder, "dropped", &found, why);
    return 0;
}

int main(int count, char **words)
{
    struct wish wish = {0};
    char        store[PATH_MAX], inner[PATH_MAX];

    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--force"))
            wish.force = true;
        else if (!strcmp(words[i], "--log") && i + 1 < count)
            wish.log = words[++i];
        else if (!strcmp(words[i], "--file") && i + 1 < count)
            wish.file = words[++i];
        else if (words[i][0] != '-' && !wish.verb)
            wish.verb = words[i];
        else if (words[i][0] != '-' && !wish.storage)
            wish.storage = words[i];
        else
            wish.verb = "";
    }
    if (!wish.verb || !wish.storage ||
        (strcmp(wish.verb, "inspect") && strcmp(wish.verb, "replay") && strcmp(wish.verb, "drop"))) {
        fprintf(stderr, "usage: cachevol-log inspect|replay|drop STORAGE_PATH [--log ID] [--file BASE] [--force]\n");
        return 2;
    }
    if (access(wish.storage, R_OK | X_OK)) {
        fprintf(stderr, "cachevol-log: %s: %s\n", wish.storage, strerror(errno));
        return 2;
    }
    if (cv_store_find(wish.storage, store) && errno != ENOENT) {
        fprintf(stderr, "cachevol-log: %s is not a folder that only its owner, this user, may write to, and nobody else replace\n", store);
        return 2;
    }
    int  bad     = logs_in(&wish, store);
    DIR *entries = opendir(store); /* with a folder for each node where the storage is shared */
    if (entries) {
        for (struct dirent *entry; (entry = readdir(entries));)
            if (entry->d_name[0] != '.' && strcmp(entry->d_name, "logs") && strcmp(entry->d_name, "read") &&
                cv_join(inner, store, entry->d_name))
                bad |= logs_in(&wish, inner);
        closedir(entries);
    }
    if (!wish.found && wish.file && !strcmp(wish.verb, "drop"))
        bad |= drop_marker(wish.file);
    return bad;
}
