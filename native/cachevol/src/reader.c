#include "reader.h"
#include "config.h"
#include "copy.h"
#include "evident.h"
#include "fill.h"
#include "mpi_peers.h"
#include "rates.h"
#include "reasons.h"
#include "relay.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define RETRY      UINT64_C(250000000) /* ns between looks at a file that was too fresh to copy */
#define PROBE      64                  /* reads after which a fast base storage is measured against the copy again */
#define LARGE      (UINT64_C(1) << 20)   /* bytes of a read that is copied while it goes on */
#define LAST       (UINT64_C(256) << 10) /* least bytes of its second piece */
#define EDGE       (UINT64_C(64) << 10)  /* bytes: pieces end at multiples */
#define REMADE     3                     /* damaged copies after which a file is read without one */
#define SECONDS    UINT64_C(2000000000) /* ns: the longest tick of a file system whose times are whole seconds */
#define MEMORY     UINT64_C(3000000000) /* bytes a second that only memory gives; stands in for an unknown rate */

struct cv_reader {
    struct cv_store *store;
    struct cv_copy  *copy;
    struct cv_peers *peers;    /* of a parallel file that other nodes read too */
    char             path[PATH_MAX];
    int              base;
    uint64_t         look;     /* ticks: when to look at the file again */
    bool             no_more;  /* it changed while it was open, or can have no copy */
    unsigned         damaged;  /* copies of it that were */
    struct cv_rate   base_rate;
    unsigned         skipped;
};

static struct cv_rate copy_rate;

struct cv_reader *cv_reader_open(struct cv_store *store, const char *path, int base)
{
    struct cv_reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        return NULL;
    reader->store = store, reader->base = base;
    snprintf(reader->path, sizeof reader->path, "%s", path);
    return reader;
}

static void let_go(struct cv_reader *reader)
{
    if (reader->copy) {
        cv_fill_forget(reader->copy);
        cv_copy_release(reader->copy);
    }
    reader->copy = NULL;
}

void cv_reader_close(struct cv_reader *reader)
{
    if (reader->peers)
        cv_peers_close(reader->peers);
    let_go(reader);
    free(reader);
}

/* Makes the copy once the file has been quiet for long enough that a later change is sure to change its times. */
static void make_copy(struct cv_reader *reader, const struct stat *now, uint64_t ticks)
{
    const char *why;
    uint64_t    clock   = cv_now();
    uint64_t    changed = (uint64_t)now->st_mtim.tv_sec * 1000000000u + (uint64_t)now->st_mtim.tv_nsec;
    uint64_t    inode   = (uint64_t)now->st_ctim.tv_sec * 1000000000u + (uint64_t)now->st_ctim.tv_nsec;

    changed = changed > inode ? changed : inode;
    /* Programs do not set the time of a status change: one of whole seconds comes of a file system that has no others. */
    uint64_t quiet = now->st_ctim.tv_nsec || cv_config.quiet > SECONDS ? cv_config.quiet : SECONDS;
    if (quiet && (clock < changed || clock - changed < quiet)) {
        cv_because(reader->path, cv_not_cached, "not yet: it was changed a moment ago (HDF5_CACHE_QUIET)", false);
        return;
    }
    enum cv_evident evident = cv_changes_are_evident(reader->base, !cv_config.quiet, &why);
    if (evident == CV_EVIDENT_LATER) {
        cv_because(reader->path, cv_not_cached, why, false);
        return;
    }
    if (evident == CV_EVIDENT) {
        why          = "the node-local storage takes no copy";
        reader->copy = cv_copy_open(reader->store, reader->path, reader->base, now);
    }
    if (!reader->copy && now->st_size)
        cv_because(reader->path, cv_not_cached, why, true);
    reader->no_more = !reader->copy;
    reader->look    = ticks + cv_config.recheck;
    if (reader->copy && cv_config.prefetch) {
        /* Opened anew, not duplicated: HDF5's lock lives as long as any duplicate does. */
        char again[64];
        snprintf(again, sizeof again, "/proc/self/fd/%d", reader->base);
        reader->copy->base = open(again, O_RDONLY | O_CLOEXEC);
        if (reader->copy->base >= 0)
            cv_fill_ahead(reader->copy);
    }
}

/* Gives the copy up when the file is no longer what it was made of, and makes one where there can be. */
static void look_anew(struct cv_reader *reader, uint64_t ticks)
{
    struct stat now;

    reader->look = ticks + (reader->copy ? cv_config.recheck : RETRY);
    if (fstat(reader->base, &now))
        return;
    if (!reader->copy) {
        make_copy(reader, &now, ticks);
    } else if (!cv_copy_fits(&reader->copy->head.file, &now)) {
        reader->no_more = true;
        cv_because(reader->path, cv_not_cached, "it changed while it was open", false);
        CV_COUNT(changed_files, 1);
        cv_copy_condemn(reader->copy);
        let_go(reader);
    }
}

/* Looks at the file where it is time to; returns whether it was. */
static bool look(struct cv_reader *reader, uint64_t ticks)
{
    if (reader->no_more || ticks < reader->look)
        return false;
    look_anew(reader, ticks);
    return true;
}

/* Whether copying would only cost: the base file comes as fast as the copy would. */
static bool base_is_fast(struct cv_reader *reader)
{
    uint64_t base = cv_rate(&reader->base_rate), copy = cv_rate(&copy_rate);

    if (!cv_config.adaptive || !base || base < (copy ? copy / 10 * 9 : MEMORY))
        return false;
    return ++reader->skipped % PROBE != 0;
}

/* As preadv, until all is there or the file ends. Returns bytes, or -1 with errno. */
static ssize_t read_parts(int fd, struct iovec *parts, int count, uint64_t at)
{
    size_t got = 0;

    for (;;) {
        for (; count > 0 && !parts->iov_len; parts++)
            count--;
        ssize_t done = count ? preadv(fd, parts, count, (off_t)(at + got)) : 0;
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -1 : (ssize_t)got;
        got += (size_t)done;
        for (; count > 0 && (size_t)done >= parts->iov_len; parts++, count--)
            done -= (ssize_t)parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
}

/* Where the first of the two pieces of a large read ends. */
static uint64_t first_piece(uint64_t size, uint64_t address)
{
    uint64_t last = size / 8 > LAST ? size / 8 : LAST;
    return (address + size - last) / EDGE * EDGE - address;
}

/* Reads `size` bytes into `data`, and the whole blocks around them, from `begin` to `end`, into `buffer`. Large ones
   in two pieces: the first is copied while the second is read. More would cost more than they save, since each waits
   for the storage anew. Returns whether all of it is there. */
static bool read_both(int fd, char *data, uint64_t size, uint64_t address, char *buffer, uint64_t begin, uint64_t end,
                      uint64_t *spent)
{
    char    *inside  = buffer + (address - begin);
    bool     relayed = size > LARGE && cv_relay_begin(data, inside), good = true;
    uint64_t from    = cv_ticks();

    for (uint64_t done = 0, next; good && done < size; done = next) {
        next                  = relayed && !done ? first_piece(size, address) : size;
        struct iovec parts[3] = {{buffer, done ? 0 : address - begin}, {data + done, next - done},
                                 {inside + size, next == size ? end - (address + size) : 0}};
        size_t       wanted   = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
        good = read_parts(fd, parts, 3, done ? address + done : begin) == (ssize_t)wanted;
        if (relayed && good && next < size)
            cv_relay_have(next);
    }
    *spent = cv_ticks() - from;
    if (relayed)
        cv_relay_end(good ? size : 0);
    else if (good)
        memcpy(inside, data, size);
    return good;
}

/* Reads a missing run of at most a piece, whole blocks of it also into memory that then goes to the copy. */
static ssize_t read_missing(struct cv_reader *reader, char *data, uint64_t size, uint64_t address)
{
    struct cv_copy *copy  = reader->copy;
    uint64_t        begin = address / CV_BLOCK * CV_BLOCK;
    uint64_t        end   = (address + size + CV_BLOCK - 1) / CV_BLOCK * CV_BLOCK;
    bool            full  = cv_ticks() < atomic_load(&copy->full), fast = !full && base_is_fast(reader);

    end          = end < copy->size ? end : copy->size;
    char *buffer = !full && !fast ? cv_fill_buffer(end - begin) : NULL;
    uint64_t from = cv_ticks();
    CV_COUNT(miss_bytes, size);
    if (!buffer) {
        CV_COUNT(fill_skipped_bytes, size);
        cv_because(reader->path, cv_not_cached,
                   fast   ? cv_base_fast
                   : full ? cv_local_full
                          : "in part: too much is on its way to the copy (HDF5_CACHE_READ_BUFFER_SIZE)",
                   false);
        ssize_t got = cv_read_all(reader->base, data, size, (off_t)address);
        if (got > 0)
            cv_rate_note(&reader->base_rate, (uint64_t)got, cv_ticks() - from);
        return got;
    }
    uint64_t spent;
    if (!read_both(reader->base, data, size, address, buffer, begin, end, &spent)) { /* shorter than it was, or an error: the plain read tells */
        cv_fill_cancel(buffer, end - begin);
        return cv_read_all(reader->base, data, size, (off_t)address);
    }
    cv_rate_note(&reader->base_rate, end - begin, spent);
    cv_fill(copy, begin, buffer, end - begin);
    return (ssize_t)size;
}

/* Reads a run from the copy; 0 where its first block is not there. A copy that is damaged is given up. */
static ssize_t read_copy(struct cv_reader *reader, char *data, uint64_t size, uint64_t address, bool looked)
{
    uint64_t from = cv_ticks();
    ssize_t  got  = cv_copy_read(reader->copy, data, size, address, looked);

    if (got > 0) {
        uint64_t spent = cv_ticks() - from;
        cv_rate_note(&copy_rate, (uint64_t)got, spent);
        CV_COUNT(hit_bytes, got);
        CV_COUNT(hit_ns, spent);
    } else if (got < 0) {
        CV_COUNT(damaged_copies, 1);
        cv_copy_condemn(reader->copy);
        let_go(reader);
        reader->no_more = reader->peers || ++reader->damaged == REMADE; /* what neighbours see of it stays the one it is */
        reader->look    = 0;
    }
    return got;
}

/* Reads a run that the copy does not have, `*size` bytes at most and afterwards. */
static ssize_t read_elsewhere(struct cv_reader *reader, char *data, uint64_t *size, uint64_t address)
{
    bool there;

    *size = cv_copy_run(reader->copy, address, address + *size, &there);
    *size = *size < CV_PIECE ? *size : CV_PIECE;
    ssize_t got = 0;
    if (reader->peers)
        got = (ssize_t)cv_peers_read(reader->peers, data, size, address, cv_rate(&reader->base_rate));
    if (!got) {
        got = read_missing(reader, data, *size, address);
        if (got > 0 && reader->peers)
            cv_peers_note(reader->peers, address, (uint64_t)got);
    }
    return got;
}

ssize_t cv_reader_read(struct cv_reader *reader, void *data, uint64_t size, uint64_t address)
{
    char    *to     = data;
    bool     looked = look(reader, cv_ticks());
    uint64_t done   = 0;

    while (done < size && reader->copy && address + size <= reader->copy->size) {
        uint64_t run = size - done;
        ssize_t  got = read_copy(reader, to + done, run, address + done, looked);
        looked       = false;
        if (got > 0) {
            done += (uint64_t)got;
            continue;
        }
        if (got < 0)
            break;
        got = read_elsewhere(reader, to + done, &run, address + done);
        if (got < 0)
            return -1;
        done += (uint64_t)got;
        if (got < (ssize_t)run)
            return (ssize_t)done;
    }
    ssize_t rest = done < size ? cv_read_all(reader->base, to + done, size - done, (off_t)(address + done)) : 0;
    return rest < 0 ? -1 : (ssize_t)done + rest;
}

struct cv_copy *cv_reader_copy(struct cv_reader *reader)
{
    look(reader, cv_ticks());
    return reader->copy;
}

void cv_reader_share(struct cv_reader *reader, struct cv_peers *peers)
{
    reader->peers = peers;
}

void cv_reader_settle(struct cv_reader *reader)
{
    if (reader->peers && reader->copy)
        cv_peers_settle(reader->peers);
}
