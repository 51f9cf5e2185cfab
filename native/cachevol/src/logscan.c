#include "logscan.h"
#include "checksum.h"
#include "marker.h"
#include "superblock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND      UINT64_C(1000000000)
#define CLOCK_SLACK (5 * SECOND)   /* between this node's clock and that of the file's server */
#define LONG_WRITE  (600 * SECOND) /* the longest one write may take that was cut off by the kill */

struct entry {
    struct cv_record head;
    unsigned         segment;
    uint64_t         at; /* of the data */
};

struct scan {
    int                folder; /* this user's own, as all that lies in it */
    int                lock;
    struct cv_control *control; /* the live page */
    struct entry      *entries;
    size_t             count, room;
};

static int open_segment(const struct scan *scan, unsigned number)
{
    char name[64];

    snprintf(name, sizeof name, "segment-%u", number);
    return openat(scan->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* a FIFO would keep us waiting */
}

static int by_sequence(const void *a, const void *b)
{
    uint64_t x = ((const struct entry *)a)->head.sequence, y = ((const struct entry *)b)->head.sequence;
    return x < y ? -1 : x > y;
}

/* Checks a record's data; false where they do not match. Without a checksum they are good where the node has not
   been started anew since: their head was written after them. */
static bool data_match(int fd, const struct cv_record *head, uint64_t at, bool same_boot, char *buffer)
{
    struct cv_sum sum;
    struct stat   there;

    if (!head->data_sum)
        return same_boot && head->size > CV_RECORD_LARGE && !fstat(fd, &there) &&
               (uint64_t)there.st_size >= at + head->size;

    cv_sum_start(&sum);
    for (uint64_t done = 0; done < head->size;) {
        uint64_t part = head->size - done < CV_RECORD_DATA ? head->size - done : CV_RECORD_DATA;
        if (cv_read_all(fd, buffer, part, (off_t)(at + done)) != (ssize_t)part)
            return false;
        cv_sum_update(&sum, buffer, part);
        done += part;
    }
    uint64_t value = cv_sum_finish(&sum);
    return (value ? value : 1) == head->data_sum;
}

static int remember(struct scan *scan, const struct cv_record *head, unsigned segment, uint64_t at)
{
    if (scan->count == scan->room) {
        size_t        room = scan->room ? 2 * scan->room : 256;
        struct entry *more = realloc(scan->entries, room * sizeof *more);
        if (!more)
            return -1;
        scan->entries = more, scan->room = room;
    }
    scan->entries[scan->count++] = (struct entry){*head, segment, at};
    return 0;
}

/* Collects the records of one segment that the base file lacks; they follow each other without a gap. */
static int walk_segment(struct scan *scan, unsigned number)
{
    uint64_t         at = 0, expected = 0;
    struct cv_record head;
    int              fd = open_segment(scan, number);

    if (fd < 0)
        return -1;
    while (cv_read_all(fd, &head, sizeof head, (off_t)at) == (ssize_t)sizeof head &&
           head.magic == CV_RECORD_MAGIC && head.nonce == scan->control->nonce &&
           head.head_sum == cv_sum(&head, offsetof(struct cv_record, data_sum)) &&
           head.size <= CV_RECORD_DATA && (expected == 0 || head.sequence == expected)) {
        if (head.sequence > atomic_load(&scan->control->done) &&
            remember(scan, &head, number, cv_record_data(at, head.size))) {
            close(fd);
            return -1;
        }
        expected = head.sequence + 1;
        at       = cv_record_end(at, head.size);
    }
    close(fd);
    return 0;
}

static int collect(struct scan *scan)
{
    int  again = openat(scan->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = again < 0 ? NULL : fdopendir(again);

    if (!files) {
        if (again >= 0)
            close(again);
        return -1;
    }
    int failed = 0;
    for (struct dirent *file; !failed && (file = readdir(files));) {
        unsigned number;
        if (sscanf(file->d_name, "segment-%u", &number) == 1)
            failed = walk_segment(scan, number);
    }
    closedir(files);
    if (scan->count)
        qsort(scan->entries, scan->count, sizeof *scan->entries, by_sequence);
    return failed;
}

/* Leaves out what HDF5 wrote after the last point at which the file was whole, but for data that are safe. Where
   records before that point are missing, there is no whole state, and all that is there counts (by --force). */
static void leave_out(struct scan *scan, struct cv_found *found)
{
    uint64_t whole = atomic_load(&scan->control->whole);
    size_t   kept  = 0;

    for (size_t i = 0; i < scan->count; i++) {
        const struct cv_record *head = &scan->entries[i].head;
        if (head->sequence <= whole || head->kind == CV_RECORD_SAFE)
            scan->entries[kept++] = scan->entries[i];
        else
            found->left_out++;
    }
    scan->count    = kept;
    found->records = kept;
    found->bytes   = 0;
    for (size_t i = 0; i < kept; i++)
        found->bytes += scan->entries[i].head.size;
}

/* Cuts the entries at the first gap or damaged record. */
static int judge(struct scan *scan, struct cv_found *found)
{
    uint64_t next     = atomic_load(&scan->control->done) + 1;
    uint64_t appended = atomic_load(&scan->control->appended);
    char    *buffer   = malloc(CV_RECORD_DATA);
    size_t   good     = 0;
    bool     booted   = strncmp(scan->control->boot, cv_boot(), sizeof scan->control->boot);

    if (!buffer)
        return -1;
    for (; good < scan->count; good++, next++) {
        const struct entry *entry = &scan->entries[good];
        if (entry->head.sequence != next)
            break;
        int  fd    = open_segment(scan, entry->segment);
        bool whole = fd >= 0 && data_match(fd, &entry->head, entry->at, !booted, buffer);
        if (fd >= 0)
            close(fd);
        if (!whole)
            break;
    }
    free(buffer);
    found->damaged = next <= appended; /* a record that was acknowledged is not there */
    found->torn    = !found->damaged && good < scan->count;
    scan->count    = good;
    leave_out(scan, found);
    return 0;
}

static void end_scan(struct scan *scan)
{
    if (scan->control)
        munmap(scan->control, CV_CONTROL_SIZE);
    if (scan->lock >= 0)
        close(scan->lock);
    if (scan->folder >= 0)
        close(scan->folder);
    free(scan->entries);
}

static int begin_scan(struct scan *scan, const char *folder, struct cv_found *found, char *why, size_t room)
{
    struct stat there;

    memset(found, 0, sizeof *found);
    memset(scan, 0, sizeof *scan);
    scan->lock   = -1;
    scan->folder = cv_open_own(folder);
    if (scan->folder < 0) {
        snprintf(why, room, errno == ENOENT ? "%s is gone" : "%s is not a log of this user's", folder);
        return -1;
    }
    scan->lock = openat(scan->folder, "control", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    void *map  = MAP_FAILED;
    if (scan->lock >= 0 && !fstat(scan->lock, &there) && S_ISREG(there.st_mode) && there.st_size >= CV_CONTROL_SIZE)
        map = mmap(NULL, CV_CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, scan->lock, 0);
    scan->control = map == MAP_FAILED ? NULL : map;
    if (scan->control && scan->control->magic != CV_LOG_MAGIC && !memcmp(&scan->control->magic, "CVOLLOG", 7)) {
        snprintf(why, room, "%s was written by another version of cachevol: replay it with that one", folder);
        end_scan(scan);
        errno = EPROTO;
        return -1;
    }
    errno = 0;
    if (!scan->control || scan->control->magic != CV_LOG_MAGIC) {
        snprintf(why, room, "%s is no staging log, or its program died before it staged anything", folder);
        end_scan(scan);
        return -1;
    }
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    found->alive       = fcntl(scan->lock, F_SETLK, &whole) != 0;
    if (collect(scan) || judge(scan, found)) {
        snprintf(why, room, "%s cannot be read: %s", folder, strerror(errno));
        end_scan(scan);
        return -1;
    }
    memcpy(&found->control, scan->control, sizeof found->control);
    found->control.path[PATH_MAX - 1] = '\0';
    return 0;
}

int cv_log_look(const char *folder, struct cv_found *found, char *why, size_t room)
{
    struct scan scan;

    if (begin_scan(&scan, folder, found, why, room))
        return -1;
    end_scan(&scan);
    return 0;
}

/* Whether a log holds data for a file: by its name, or by what the file is where it has several. */
static bool is_of(const struct cv_control *c, const char *file)
{
    struct stat there;

    if (!file || !strcmp(c->path, file))
        return true;
    return !stat(file, &there) && there.st_ino == c->inode && there.st_dev == c->device &&
           !strncmp(c->boot, cv_boot(), sizeof c->boot);
}

/* Opens the base file and makes sure that it is the one that was staged for, unchanged by anybody else. */
static int open_base(const struct cv_control *c, bool force, char *why, size_t room)
{
    struct stat      there;
    struct cv_marker marker;
    int              fd = open(c->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* its real path then */

    if (fd < 0 || fstat(fd, &there)) {
        snprintf(why, room, "%s cannot be opened: %s", c->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    uint64_t changed = (uint64_t)there.st_mtim.tv_sec * SECOND + (uint64_t)there.st_mtim.tv_nsec;
    uint64_t ours    = atomic_load(&c->touched), during = atomic_load(&c->changing);
    uint64_t latest  = (ours > during ? ours : during) + (during ? LONG_WRITE : CLOCK_SLACK);
    *why             = '\0';
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        snprintf(why, room, "%s is open in another program", c->path);
    else if (force)
        return fd;
    else if (there.st_ino != c->inode ||
             (there.st_dev != c->device && !strncmp(c->boot, cv_boot(), sizeof c->boot)))
        snprintf(why, room, "%s is another file now than the one that was written to", c->path);
    else if (cv_marker_read(c->path, &marker) || strcmp(marker.id, c->id))
        snprintf(why, room, "%s has been written anew since: its marker is gone", c->path);
    else if (changed > latest)
        snprintf(why, room, "%s was changed after the program ended", c->path);
    if (!*why)
        return fd;
    close(fd);
    return -1;
}

static int apply(const struct scan *scan, int base)
{
    char *buffer = malloc(CV_RECORD_DATA);

    if (!buffer)
        return -1;
    for (size_t i = 0; i < scan->count; i++) {
        const struct entry *entry = &scan->entries[i];
        int                 failed;
        atomic_store(&scan->control->changing, cv_now());
        if (entry->head.kind == CV_RECORD_RESIZE) {
            failed = ftruncate(base, (off_t)entry->head.address);
        } else {
            int fd = open_segment(scan, entry->segment);
            failed = fd < 0 ||
                     cv_read_all(fd, buffer, entry->head.size, (off_t)entry->at) != (ssize_t)entry->head.size ||
                     cv_write_all(base, buffer, entry->head.size, (off_t)entry->head.address);
            int error = errno;
            if (fd >= 0)
                close(fd);
            errno = error;
        }
        if (failed) {
            free(buffer);
            return -1;
        }
    }
    free(buffer);
    atomic_store(&scan->control->changing, cv_now());
    if (!atomic_load(&scan->control->forced) && cv_superblock_release(base))
        return -1;
    /* Durable before the log goes; it stays replayable until then, from the first record on. */
    if (fsync(base))
        return -1;
    atomic_store(&scan->control->touched, cv_now());
    atomic_store(&scan->control->changing, 0);
    return 0;
}

/* What was looked at, whatever has its name by now. */
static void remove_log(const struct scan *scan, const char *folder)
{
    cv_empty_folder(scan->folder);
    rmdir(folder);
}

enum cv_replayed cv_log_replay(const char *folder, const char *file, bool force, struct cv_found *found, char *why,
                               size_t room)
{
    struct scan scan;

    if (begin_scan(&scan, folder, found, why, room))
        return CV_REPLAY_REFUSED;
    enum cv_replayed outcome = CV_REPLAY_REFUSED;
    if (!is_of(&found->control, file)) {
        snprintf(why, room, "%s is a log of another file, %s", folder, found->control.path);
    } else if (found->alive) {
        snprintf(why, room, "process %lu still writes %s", (unsigned long)found->control.pid, found->control.path);
        outcome = CV_REPLAY_ALIVE;
    } else if (found->damaged && !force) {
        snprintf(why, room, "%s is damaged behind %lu whole records", folder, (unsigned long)found->records);
    } else {
        int base = open_base(&found->control, force, why, room);
        if (base >= 0 && !apply(&scan, base))
            outcome = CV_REPLAY_DONE;
        else if (base >= 0)
            snprintf(why, room, "%s cannot be written: %s", found->control.path, strerror(errno));
        if (base >= 0)
            close(base);
        else if (found->records == 0)
            outcome = CV_REPLAY_DONE; /* the file is somebody else's now, and nothing is missing in it */
    }
    if (outcome == CV_REPLAY_DONE && cv_marker_is_gone(found->control.path, found->control.id))
        remove_log(&scan, folder); /* else both stay, and the next replay has nothing to do but this */
    end_scan(&scan);
    return outcome;
}

bool cv_log_sweep(const char *folder)
{
    const char *name = strrchr(folder, '/') + 1, *dash = name + strlen(name);
    size_t      host = strlen(cv_host());
    uint64_t    magic = 0;

    for (int fields = 0; dash > name && fields < 3;) /* HOST-PID-SERIAL-NONCE, where a host's name may hold dashes */
        fields += *--dash == '-';
    long pid = strtol(dash + 1, NULL, 10);
    if ((size_t)(dash - name) != host || memcmp(name, cv_host(), host) || pid <= 0 || !kill((pid_t)pid, 0) ||
        errno != ESRCH)
        return false;
    int own = cv_open_own(folder);
    int fd  = own < 0 ? -1 : openat(own, "control", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        if (cv_read_all(fd, &magic, sizeof magic, 0) < 0)
            magic = 1;
        close(fd);
        /* The first segment comes after the magic: so there is nothing else in it, or it is no log. */
        if (!magic)
            unlinkat(own, "control", 0);
    }
    if (own >= 0)
        close(own);
    return own >= 0 && !magic && !rmdir(folder);
}

enum cv_replayed cv_log_drop(const char *folder, const char *file, struct cv_found *found, char *why, size_t room)
{
    struct scan scan;

    if (begin_scan(&scan, folder, found, why, room)) {
        if (errno == EPROTO)
            return CV_REPLAY_REFUSED;
        if (file) /* a marker can name any folder of this user's */
            return cv_log_sweep(folder) ? CV_REPLAY_DONE : CV_REPLAY_REFUSED;
        cv_remove_folder(folder); /* nothing was staged in it */
        return CV_REPLAY_DONE;
    }
    if (!is_of(&found->control, file)) {
        snprintf(why, room, "%s is a log of another file, %s", folder, found->control.path);
        end_scan(&scan);
        return CV_REPLAY_REFUSED;
    }
    if (found->alive) {
        snprintf(why, room, "process %lu still writes %s", (unsigned long)found->control.pid, found->control.path);
        end_scan(&scan);
        return CV_REPLAY_ALIVE;
    }
    cv_marker_remove(found->control.path, found->control.id);
    remove_log(&scan, folder);
    end_scan(&scan);
    return CV_REPLAY_DONE;
}
