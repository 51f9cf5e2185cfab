#include "log.h"
#include "checksum.h"
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CACHED (256 << 10) /* bytes that stay in the processor's cache between checksum and write */
#define CALL   (1 << 20)   /* bytes of one call: file systems take large data faster in several */

static void remove_segments(struct cv_log *log, const struct cv_segment *segment)
{
    for (; segment; segment = segment->next) {
        char name[64], path[PATH_MAX];
        snprintf(name, sizeof name, "segment-%u", segment->number);
        if (cv_join(path, log->folder, name))
            unlink(path);
        cv_store_give(log->store, segment->capacity);
    }
}

static int new_folder(struct cv_log *log, uint64_t nonce)
{
    static atomic_uint serial;
    char               logs[PATH_MAX], id[128];

    snprintf(id, sizeof id, "%s-%ld-%u-%08x", cv_host(), (long)getpid(), atomic_fetch_add(&serial, 1),
             (unsigned)nonce);
    if (!cv_join(logs, log->store->folder, "logs") || !cv_join(log->folder, logs, id)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkdir(log->folder, 0700);
}

struct cv_log *cv_log_create(struct cv_store *store, const char *path, uint64_t device, uint64_t inode,
                             uint64_t limit)
{
    struct cv_log *log = calloc(1, sizeof *log);
    char           control[PATH_MAX];
    uint64_t       seed[4] = {cv_now(), (uint64_t)getpid(), (uint64_t)(uintptr_t)log, inode};

    if (!log || !(log->control = calloc(1, sizeof *log->control))) {
        free(log);
        return NULL;
    }
    log->store     = store;
    pthread_mutex_init(&log->turn, NULL);
    log->limit     = limit < 2 * CV_SEGMENT_SIZE ? 2 * CV_SEGMENT_SIZE : limit;
    uint64_t nonce = cv_sum(seed, sizeof seed);
    if (strlen(path) >= PATH_MAX || new_folder(log, nonce)) {
        free(log->control);
        free(log);
        return NULL;
    }
    cv_join(control, log->folder, "control");
    log->lock          = open(control, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int          error = log->lock < 0 ? errno : posix_fallocate(log->lock, 0, CV_CONTROL_SIZE);
    if (!error && fcntl(log->lock, F_SETLK, &whole))
        error = errno;
    void *map = error ? MAP_FAILED
                      : mmap(NULL, CV_CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, log->lock, 0);
    if (map == MAP_FAILED) {
        error = error ? error : errno;
        if (log->lock >= 0)
            close(log->lock);
        cv_remove_folder(log->folder);
        free(log->control);
        free(log);
        errno = error;
        return NULL;
    }
    log->page            = map;
    struct cv_control *c = log->control;
    c->nonce = nonce, c->pid = (uint64_t)getpid(), c->pid_start = cv_process_start(getpid());
    c->created = cv_now(), c->device = device, c->inode = inode;
    atomic_store(&c->touched, c->created);
    snprintf(c->id, sizeof c->id, "%s", strrchr(log->folder, '/') + 1);
    snprintf(c->host, sizeof c->host, "%s", cv_host());
    snprintf(c->boot, sizeof c->boot, "%s", cv_boot());
    snprintf(c->path, sizeof c->path, "%s", path);
    log->lost = cv_guard(log->page, CV_CONTROL_SIZE);
    memcpy(log->page, c, sizeof *c);
    atomic_thread_fence(memory_order_seq_cst);
    log->page->magic = c->magic = CV_LOG_MAGIC;
    return log;
}

/* Gives the log another segment, a used one where there is one. */
static int next_segment(struct cv_log *log, uint64_t need)
{
    pthread_mutex_lock(&log->turn);
    struct cv_segment *segment = log->spare;
    if (segment)
        log->spare = segment->next;
    pthread_mutex_unlock(&log->turn);

    if (!segment) {
        char     name[64], path[PATH_MAX];
        uint64_t size = CV_SEGMENT_SIZE;

        if (need > size) {
            errno = EFBIG;
            return -1;
        }
        bool room = log->bytes + size <= log->limit;
        bool took = room && cv_store_take(log->store, size);
        if (room && !took && !log->recounted) { /* killed processes may have left the count too high */
            log->recounted = true;
            cv_store_recount(log->store);
            took = cv_store_take(log->store, size);
        }
        if (!took) {
            errno = log->newest ? EAGAIN : ENOSPC; /* full for now, or for good */
            return -1;
        }
        segment = calloc(1, sizeof *segment);
        snprintf(name, sizeof name, "segment-%u", log->segments);
        int fd = segment && cv_join(path, log->folder, name)
                     ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                     : -1;
        /* As long as its map, so that no page of the map lies behind the end. */
        if (fd < 0 || ftruncate(fd, (off_t)size)) {
            int error = errno;
            if (fd >= 0) {
                close(fd);
                unlink(path);
            }
            free(segment);
            cv_store_give(log->store, size);
            errno = error;
            return -1;
        }
        segment->fd = fd, segment->number = log->segments++, segment->capacity = size;
        log->bytes += size;
    }
    segment->end = 0, segment->last = 0, segment->next = NULL;
    pthread_mutex_lock(&log->turn);
    if (log->newest)
        log->newest->next = segment;
    else
        log->oldest = segment;
    log->newest = segment;
    pthread_mutex_unlock(&log->turn);
    return 0;
}

static uint64_t finished(const struct cv_sum *sum)
{
    uint64_t value = cv_sum_finish(sum);
    return value ? value : 1; /* 0 stands for none */
}

/* Writes head and data in one call where they are small, else data by data, each just after its checksum. */
static int put(const struct cv_segment *segment, uint64_t at, struct cv_record *head, const char *data, bool late)
{
    struct cv_sum sum;
    bool          unsummed = late && head->size > CV_RECORD_LARGE;

    cv_sum_start(&sum);
    if (head->size <= CV_RECORD_LARGE) {
        cv_sum_update(&sum, data, head->size);
    } else {
        for (uint64_t done = 0; done < head->size;) {
            uint64_t most = unsummed ? CALL : CACHED, part = head->size - done < most ? head->size - done : most;
            if (!unsummed)
                cv_sum_update(&sum, data + done, part);
            if (cv_write_all(segment->fd, data + done, part, (off_t)(cv_record_data(at, head->size) + done)))
                return -1;
            done += part;
        }
    }
    head->data_sum = unsummed ? 0 : finished(&sum);
    head->head_sum = cv_sum(head, offsetof(struct cv_record, data_sum));
    if (head->size > CV_RECORD_LARGE || !head->size)
        return cv_write_all(segment->fd, head, sizeof *head, (off_t)at);
    struct iovec parts[2] = {{head, sizeof *head}, {(void *)(uintptr_t)data, head->size}};
    ssize_t      whole    = (ssize_t)(sizeof *head + head->size), wrote;
    do
        wrote = pwritev(segment->fd, parts, 2, (off_t)at);
    while (wrote < 0 && errno == EINTR);
    if (wrote == whole)
        return 0;
    if (wrote < 0)
        return -1;
    /* A short write is how a full file system shows first; ask again for the rest. */
    if (cv_write_all(segment->fd, data, head->size, (off_t)(at + sizeof *head)))
        return -1;
    return cv_write_all(segment->fd, head, sizeof *head, (off_t)at);
}

/* A file that was cut short gets its length back from what is written to it later, with zeros in between: so it is looked
   at before. */
static bool is_cut(struct cv_segment *segment)
{
    struct stat now;

    if (segment->lost && *segment->lost)
        segment->cut = true;
    if (!segment->cut && (fstat(segment->fd, &now) || (uint64_t)now.st_size < segment->capacity))
        segment->cut = true;
    return segment->cut;
}

int cv_log_append(struct cv_log *log, enum cv_record_kind kind, uint64_t address, const void *data,
                  uint64_t size, struct cv_place *place)
{
    /* Where the base file holds all of the newest segment, it begins again: its pages are there already. */
    if (log->newest && log->newest->last <= atomic_load(&log->control->done))
        log->newest->end = 0;
    if (!log->newest || cv_record_end(log->newest->end, size) > log->newest->capacity)
        if (next_segment(log, cv_record_end(0, size)))
            return -1;
    struct cv_segment *segment = log->newest;
    struct cv_record   head    = {.magic = CV_RECORD_MAGIC, .nonce = log->control->nonce, .address = address,
                                  .sequence = atomic_load(&log->control->appended) + 1, .size = size,
                                  .kind = kind};
    if (*log->lost || is_cut(segment)) {
        errno = EIO;
        return -1;
    }
    if (put(segment, segment->end, &head, data, log->late))
        return -1;
    *place       = (struct cv_place){segment, head.sequence, segment->end, cv_record_data(segment->end, size)};
    segment->end = cv_record_end(segment->end, size);
    segment->last = head.sequence;
    cv_control_set(log, &log->control->appended, head.sequence);
    return 0;
}

void cv_log_sum(const struct cv_place *place, uint64_t size)
{
    struct cv_sum sum;

    cv_sum_start(&sum);
    cv_sum_update(&sum, place->segment->map + place->at, size);
    /* Eight bytes that lie in one page, since heads begin at multiples of eight: they are there or not. Where the
       storage refuses, the record goes without. */
    uint64_t value = finished(&sum);
    if (is_cut(place->segment))
        return;
    cv_write_all(place->segment->fd, &value, sizeof value,
                 (off_t)(place->head + offsetof(struct cv_record, data_sum)));
}

void cv_log_done(struct cv_log *log, uint64_t sequence)
{
    cv_control_set(log, &log->control->done, sequence);
    pthread_mutex_lock(&log->turn);
    while (log->oldest != log->newest && log->oldest->last <= sequence) { /* the newest may be written to */
        struct cv_segment *segment = log->oldest;
        log->oldest                = segment->next;
        segment->next              = log->spare;
        log->spare                 = segment;
    }
    pthread_mutex_unlock(&log->turn);
}

const char *cv_segment_map(struct cv_segment *segment)
{
    if (is_cut(segment)) {
        errno = EIO;
        return NULL;
    }
    if (!segment->map) {
        void *map = mmap(NULL, segment->capacity, PROT_READ, MAP_SHARED, segment->fd, 0);
        if (map == MAP_FAILED)
            return NULL;
        segment->map  = map;
        segment->lost = cv_guard(map, segment->capacity);
    }
    return segment->map;
}

static void free_segments(struct cv_segment *segment)
{
    while (segment) {
        struct cv_segment *next = segment->next;
        if (segment->map) {
            segment->lost = NULL;
            cv_guard_no_more(segment->map);
            munmap(segment->map, segment->capacity);
        }
        close(segment->fd);
        free(segment);
        segment = next;
    }
}

void cv_log_remove(struct cv_log *log)
{
    remove_segments(log, log->oldest);
    remove_segments(log, log->spare);
    cv_remove_folder(log->folder);
}

void cv_log_free(struct cv_log *log)
{
    free_segments(log->oldest);
    free_segments(log->spare);
    cv_guard_no_more(log->page);
    munmap(log->page, CV_CONTROL_SIZE);
    free(log->control);
    close(log->lock); /* and with it the lock */
    free(log);
}

/* ---- Logs that threads free. ---- */

static pthread_mutex_t leaving_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  all_left     = PTHREAD_COND_INITIALIZER;
static unsigned        leaving;

void cv_log_leaves(void)
{
    pthread_mutex_lock(&leaving_lock);
    leaving++;
    pthread_mutex_unlock(&leaving_lock);
}

void cv_log_left(void)
{
    pthread_mutex_lock(&leaving_lock);
    if (!--leaving)
        pthread_cond_broadcast(&all_left);
    pthread_mutex_unlock(&leaving_lock);
}

void cv_logs_fork(enum cv_fork when)
{
    if (when == CV_FORK_CHILD) {
        pthread_mutex_init(&leaving_lock, NULL);
        pthread_cond_init(&all_left, NULL);
    } else if (when == CV_FORK_PARENT) {
        pthread_mutex_unlock(&leaving_lock);
    } else {
        pthread_mutex_lock(&leaving_lock);
        while (leaving)
            pthread_cond_wait(&all_left, &leaving_lock);
    }
}
