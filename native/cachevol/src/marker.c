#include "marker.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int marker_path(const char *path, char place[PATH_MAX])
{
    const char *name   = strrchr(path, '/');
    int         length = name ? snprintf(place, PATH_MAX, "%.*s/.%s.cachevol", (int)(name - path), path, name + 1)
                              : -1;

    if (length > 0 && length < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int cv_marker_write(const char *path, const struct cv_marker *marker)
{
    char place[PATH_MAX], text[PATH_MAX + 512];

    if (marker_path(path, place))
        return -1;
    int length = snprintf(text, sizeof text,
                          "%s\n%s\n%ld\n%s\n"
                          "This file holds data that is still on the node above: `tiercel cache replay` there "
                          "finishes it.\n",
                          marker->host, marker->id, marker->pid, marker->folder);
    int fd = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    int failed = cv_write_all(fd, text, (size_t)length, 0) ? errno : 0;
    (void)!fchmod(fd, 0644); /* whoever may read the file must see that data are missing in it, whatever the umask */
    close(fd);
    if (failed) {
        unlink(place);
        errno = failed;
        return -1;
    }
    return 0;
}

/* Whether this user laid a marker who could not have replaced the file that it stands beside. */
static bool is_a_strangers(const char *path, uid_t user)
{
    struct stat file, folder;
    char        above[PATH_MAX];

    snprintf(above, sizeof above, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (user == 0 || user == geteuid() || stat(*above ? above : "/", &folder) || !(folder.st_mode & S_ISVTX))
        return false;
    return user != folder.st_uid && (stat(path, &file) || user != file.st_uid);
}

int cv_marker_read(const char *path, struct cv_marker *marker)
{
    char        place[PATH_MAX], text[PATH_MAX + 512], *line[4], *at = text;
    struct stat there;

    memset(marker, 0, sizeof *marker);
    if (marker_path(path, place))
        return -1;
    int fd = open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* a FIFO would keep us waiting */
    if (fd < 0)
        return -1;
    if (fstat(fd, &there) || !S_ISREG(there.st_mode) || is_a_strangers(path, there.st_uid)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    ssize_t got = cv_read_all(fd, text, sizeof text - 1, 0);
    close(fd);
    if (got < 0)
        return -1;
    text[got] = '\0';
    for (char *c = text; *c; c++) /* what others wrote goes to terminals */
        if ((unsigned char)*c < ' ' && *c != '\n')
            *c = '?';
    for (int i = 0; i < 4; i++) {
        char *end = strchr(at, '\n');
        if (!end) {
            errno = EINVAL; /* half written: its writer had acknowledged nothing yet */
            return -1;
        }
        *end = '\0', line[i] = at, at = end + 1;
    }
    snprintf(marker->host, sizeof marker->host, "%s", line[0]);
    snprintf(marker->id, sizeof marker->id, "%s", line[1]);
    marker->pid = strtol(line[2], NULL, 10);
    snprintf(marker->folder, sizeof marker->folder, "%s", line[3]);
    if (marker->folder[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

bool cv_marker_is_gone(const char *path, const char *id)
{
    return !cv_marker_remove(path, id) || errno == ENOENT;
}

int cv_marker_remove(const char *path, const char *id)
{
    struct cv_marker there;
    char             place[PATH_MAX];

    if (marker_path(path, place))
        return -1;
    if (cv_marker_read(path, &there) && errno != EINVAL)
        return -1;
    if (id && there.id[0] && strcmp(there.id, id)) {
        errno = ENOENT;
        return -1;
    }
    return unlink(place);
}
