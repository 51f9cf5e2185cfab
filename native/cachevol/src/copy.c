#include "copy.h"
#include "checksum.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRIES 30 /* to be alone with a new map, for a moment, among the processes of an MPI program */

static uint64_t blocks_of(uint64_t size)
{
    return (size + CV_BLOCK - 1) / CV_BLOCK;
}

static int describe(struct cv_copy_head *head, const char *path, int base, const struct stat *now)
{
    char    first[CV_BLOCK];
    ssize_t got = cv_read_all(base, first, sizeof first, 0);

    if (got < 0 || strlen(path) >= sizeof head->path)
        return -1;
    memset(head, 0, sizeof *head);
    head->size = (uint64_t)now->st_size, head->device = now->st_dev, head->inode = now->st_ino;
    head->mtime = now->st_mtim.tv_sec, head->mtime_ns = now->st_mtim.tv_nsec;
    head->ctime = now->st_ctim.tv_sec, head->ctime_ns = now->st_ctim.tv_nsec;
    head->first_sum = cv_sum(first, (size_t)got);
    snprintf(head->boot, sizeof head->boot, "%s", cv_boot());
    strcpy(head->path, path);
    return 0;
}

static bool same_file(const struct cv_copy_head *a, const struct cv_copy_head *b)
{
    return a->size == b->size && a->device == b->device && a->inode == b->inode && a->mtime == b->mtime &&
           a->mtime_ns == b->mtime_ns && a->ctime == b->ctime && a->ctime_ns == b->ctime_ns &&
           a->first_sum == b->first_sum && !strcmp(a->boot, b->boot) && !strcmp(a->path, b->path);
}

bool cv_copy_fits(const struct cv_copy *copy, const struct stat *now)
{
    const struct cv_copy_head *head = copy->head;

    return head->size == (uint64_t)now->st_size && head->mtime == now->st_mtim.tv_sec &&
           head->mtime_ns == now->st_mtim.tv_nsec && head->ctime == now->st_ctim.tv_sec &&
           head->ctime_ns == now->st_ctim.tv_nsec;
}

/* Opens the map and holds a shared lock on it; where it is not (or no longer) what `wanted` says, makes it anew,
   which only a process that is alone with it may. */
static int open_map(const char *folder, const struct cv_copy_head *wanted, size_t length)
{
    char path[PATH_MAX];

    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct stat         there;
        struct cv_copy_head head;
        if ((mkdir(folder, 0700) && errno != EEXIST) || !cv_join(path, folder, "map"))
            return -1;
        int map = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (map < 0)
            return -1;
        if (flock(map, LOCK_SH) || fstat(map, &there) || there.st_nlink == 0) {
            close(map); /* somebody removed it just now */
            continue;
        }
        if (there.st_size == (off_t)length && cv_read_all(map, &head, sizeof head, 0) == (ssize_t)sizeof head &&
            head.magic == CV_COPY_MAGIC && same_file(&head, wanted))
            return map;
        if (flock(map, LOCK_EX | LOCK_NB)) {
            close(map); /* in the making, or in use by somebody who sees it otherwise */
            usleep(500 + (unsigned)getpid() * 7919 % 1000 * (tries % 8)); /* each process at another time */
            continue;
        }
        struct cv_copy_head fresh = *wanted;
        fresh.magic               = 0;
        fresh.created             = cv_now();
        char data[PATH_MAX];
        if (cv_join(data, folder, "data"))
            unlink(data);
        /* Allocated, not just long: a page fault in a hole of a full file system would be a SIGBUS. */
        if (ftruncate(map, 0) || posix_fallocate(map, 0, (off_t)length) ||
            cv_write_all(map, &fresh, sizeof fresh, 0)) {
            unlink(path);
            close(map);
            return -1;
        }
        fresh.magic = CV_COPY_MAGIC;
        if (cv_write_all(map, &fresh.magic, sizeof fresh.magic, 0) || flock(map, LOCK_SH) ||
            fstat(map, &there) || there.st_nlink == 0) {
            close(map);
            continue;
        }
        return map;
    }
    return -1;
}

struct cv_copy *cv_copy_open(struct cv_store *store, const char *path, int base, const struct stat *now)
{
    struct cv_copy_head wanted;
    char                name[PATH_MAX + 64], folder[PATH_MAX], file[PATH_MAX];

    if (now->st_size <= 0 || describe(&wanted, path, base, now))
        return NULL;
    struct cv_copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    snprintf(name, sizeof name, "read/%016lx", (unsigned long)cv_sum(&wanted, sizeof wanted));
    copy->store = store, copy->size = wanted.size, copy->data = copy->map = copy->base = -1;
    atomic_init(&copy->users, 1);
    size_t words = (size_t)(blocks_of(wanted.size) + 63) / 64;
    copy->mapped = CV_COPY_HEAD + words * 8;
    if (cv_join(folder, store->folder, name))
        copy->map = open_map(folder, &wanted, copy->mapped);
    if (copy->map >= 0 && cv_join(file, folder, "data"))
        copy->data = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    void *map = MAP_FAILED;
    if (copy->data >= 0 && !ftruncate(copy->data, (off_t)copy->size))
        map = mmap(NULL, copy->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, copy->map, 0);
    if (map == MAP_FAILED) {
        cv_copy_release(copy);
        return NULL;
    }
    copy->head = map;
    copy->bits = (_Atomic uint64_t *)(void *)((char *)map + CV_COPY_HEAD);
    atomic_store(&copy->head->used, cv_now());
    atomic_fetch_add(&copy->head->uses, 1);
    CV_COUNT(files_cached, 1);
    return copy;
}

void cv_copy_hold(struct cv_copy *copy)
{
    atomic_fetch_add(&copy->users, 1);
}

void cv_copy_release(struct cv_copy *copy)
{
    if (atomic_fetch_sub(&copy->users, 1) != 1)
        return;
    if (copy->head)
        munmap(copy->head, copy->mapped);
    if (copy->data >= 0)
        close(copy->data);
    if (copy->map >= 0)
        close(copy->map); /* and with it our part of the lock */
    if (copy->base >= 0)
        close(copy->base);
    free(copy);
}

uint64_t cv_copy_run(const struct cv_copy *copy, uint64_t address, uint64_t end, bool *there)
{
    uint64_t block = address / CV_BLOCK, last = (end - 1) / CV_BLOCK;
    uint64_t word  = atomic_load_explicit(&copy->bits[block / 64], memory_order_acquire);

    *there = word >> (block % 64) & 1;
    /* Whole words at once: a large read asks about thousands of blocks. */
    while (++block <= last) {
        if (block % 64 == 0) {
            word = atomic_load_explicit(&copy->bits[block / 64], memory_order_acquire);
            if (word == (*there ? UINT64_MAX : 0)) {
                block += 63;
                continue;
            }
        }
        if ((word >> (block % 64) & 1) != *there)
            break;
    }
    uint64_t stop = block * CV_BLOCK;
    return (stop < end ? stop : end) - address;
}

/* Marks blocks as there; returns how many were not. */
static uint64_t mark(struct cv_copy *copy, uint64_t first, uint64_t count)
{
    uint64_t fresh = 0;

    for (uint64_t at = first; at < first + count;) {
        uint64_t in_word = 64 - at % 64, left = first + count - at, take = in_word < left ? in_word : left;
        uint64_t mask = (take == 64 ? UINT64_MAX : (UINT64_C(1) << take) - 1) << (at % 64);
        uint64_t old  = atomic_fetch_or_explicit(&copy->bits[at / 64], mask, memory_order_release);
        fresh += (uint64_t)__builtin_popcountll(mask & ~old);
        at += take;
    }
    atomic_fetch_add(&copy->head->blocks, fresh);
    return fresh;
}

int64_t cv_copy_put(struct cv_copy *copy, uint64_t address, const void *data, uint64_t size)
{
    uint64_t count = blocks_of(size), taken = count * CV_BLOCK;

    if (!cv_store_take(copy->store, taken) &&
        (!cv_copy_evict(copy->store, taken) || !cv_store_take(copy->store, taken))) {
        errno = EDQUOT;
        return -1;
    }
    if (cv_write_all(copy->data, data, size, (off_t)address)) {
        cv_store_give(copy->store, taken);
        return -1;
    }
    uint64_t fresh = mark(copy, address / CV_BLOCK, count);
    cv_store_give(copy->store, (count - fresh) * CV_BLOCK); /* another process put these there meanwhile */
    return (int64_t)(fresh * CV_BLOCK);
}
