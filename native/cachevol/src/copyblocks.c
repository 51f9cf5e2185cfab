/* The blocks of a copy: putting them there, and handing out none that is not what was put. */
#include "checksum.h"
#include "copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH   UINT64_C(1024)     /* blocks whose words are read at once */
#define SETTLED UINT64_C(20000000) /* ns: two changes of a file further apart have different times on any kernel, */
#define SECONDS UINT64_C(2000000000) /* or on a file system whose times are whole seconds */

/* A block that proved itself need not do so again until `data` changes: each change of that begins an era. */
struct cv_proved {
    struct timespec changed; /* the status change of `data` in this era */
    uint64_t        era;
    struct {
        uint64_t era, bits; /* of 64 blocks; bits of another era do not count */
    } of[];
};

static uint64_t blocks_of(uint64_t size)
{
    return (size + CV_BLOCK - 1) / CV_BLOCK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t size_of(const struct cv_copy *copy, uint64_t block)
{
    return least(CV_BLOCK, copy->size - block * CV_BLOCK);
}

struct cv_proved *cv_proved_make(uint64_t size)
{
    struct cv_proved *proved;
    proved = calloc(1, sizeof *proved + (size_t)(blocks_of(size) / 64 + 1) * sizeof proved->of[0]);
    if (proved)
        proved->era = 1;
    return proved;
}

/* ---- The map. ---- */

void cv_copy_words(const struct cv_copy *copy, uint64_t first, uint64_t count, uint64_t *words)
{
    ssize_t got = cv_read_all(copy->map, words, count * sizeof *words, (off_t)(CV_COPY_HEAD + first * sizeof *words));

    /* Of a map that somebody cut short, the rest is missing. */
    got = got < 0 ? 0 : got / (ssize_t)sizeof *words;
    memset(words + got, 0, (count - (uint64_t)got) * sizeof *words);
}

uint64_t cv_copy_word(const struct cv_copy *copy, uint64_t block, const void *bytes, uint64_t size)
{
    uint64_t word = cv_sum(bytes, size) ^ (copy->state + block * UINT64_C(0x9e3779b97f4a7c15));

    word = (word ^ word >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (word ^ word >> 32) | 1;
}

uint64_t cv_copy_run(const struct cv_copy *copy, uint64_t address, uint64_t end, bool *there)
{
    uint64_t words[BATCH], first = address / CV_BLOCK;
    uint64_t count = least(BATCH, blocks_of(end) - first), run = 1;

    cv_copy_words(copy, first, count, words);
    *there = words[0];
    while (run < count && !words[run] == !*there)
        run++;
    return least((first + run) * CV_BLOCK, end) - address;
}

/* ---- Reading. ---- */

static bool is_proved(const struct cv_proved *proved, uint64_t block)
{
    return proved->of[block / 64].era == proved->era && proved->of[block / 64].bits >> (block % 64) & 1;
}

static void prove(struct cv_proved *proved, uint64_t block)
{
    if (proved->of[block / 64].era != proved->era)
        proved->of[block / 64].era = proved->era, proved->of[block / 64].bits = 0;
    proved->of[block / 64].bits |= UINT64_C(1) << block % 64;
}

/* Length in bytes of the run from `address` to at most `end` of blocks that have proved themselves. */
static uint64_t proved_run(const struct cv_copy *copy, uint64_t address, uint64_t end)
{
    const struct cv_proved *proved = copy->proved;
    uint64_t                block = address / CV_BLOCK, last = (end - 1) / CV_BLOCK;

    if (!is_proved(proved, block))
        return 0;
    while (++block <= last) {
        /* Whole words at once: a large read asks about thousands of blocks. */
        if (block % 64 == 0 && proved->of[block / 64].era == proved->era && proved->of[block / 64].bits == UINT64_MAX)
            block += 63;
        else if (!is_proved(proved, block))
            break;
    }
    return least(block * CV_BLOCK, end) - address;
}

/* Whether `data` is as long as it must be; a change of it begins an era. */
static bool look_at_data(struct cv_copy *copy)
{
    struct cv_proved *proved = copy->proved;
    struct stat       now;

    if (fstat(copy->data, &now) || now.st_size != (off_t)copy->size)
        return false;
    if (now.st_ctim.tv_sec != proved->changed.tv_sec || now.st_ctim.tv_nsec != proved->changed.tv_nsec) {
        proved->changed = now.st_ctim;
        proved->era++;
    }
    return true;
}

/* Whether a change from now on must show in the time that the era has. */
static bool era_is_settled(const struct cv_proved *proved)
{
    uint64_t tick = proved->changed.tv_nsec ? SETTLED : SECONDS;

    return cv_now() > (uint64_t)proved->changed.tv_sec * 1000000000u + (uint64_t)proved->changed.tv_nsec + tick;
}

/* Compares a block with its word; once more where another process was just putting it there. */
static bool is_right(struct cv_copy *copy, uint64_t block, uint64_t word, char *bytes)
{
    uint64_t size = size_of(copy, block);

    if (cv_copy_word(copy, block, bytes, size) == word)
        return true;
    cv_copy_words(copy, block, 1, &word);
    return cv_read_all(copy->data, bytes, size, (off_t)(block * CV_BLOCK)) == (ssize_t)size &&
           cv_copy_word(copy, block, bytes, size) == word;
}

/* Reads what of one block lies from `address` to `end`. */
static bool read_edge(struct cv_copy *copy, uint64_t address, uint64_t end, uint64_t word, char *to)
{
    char     bytes[CV_BLOCK];
    uint64_t block = address / CV_BLOCK, size = size_of(copy, block);

    if (cv_read_all(copy->data, bytes, size, (off_t)(block * CV_BLOCK)) != (ssize_t)size ||
        !is_right(copy, block, word, bytes))
        return false;
    memcpy(to, bytes + address % CV_BLOCK, end - address);
    return true;
}

/* Reads blocks that have yet to prove themselves. */
static ssize_t read_and_prove(struct cv_copy *copy, char *to, uint64_t address, uint64_t end)
{
    uint64_t words[BATCH], first = address / CV_BLOCK, count = least(BATCH, blocks_of(end) - first), run = 0;

    cv_copy_words(copy, first, count, words);
    while (run < count && words[run])
        run++;
    if (!run)
        return 0;
    end                 = least(end, (first + run) * CV_BLOCK);
    uint64_t from       = address % CV_BLOCK ? least((first + 1) * CV_BLOCK, end) : address;
    uint64_t tail       = end == copy->size ? end : end / CV_BLOCK * CV_BLOCK; /* where a last part begins */
    if (from > address && !read_edge(copy, address, from, words[0], to))
        return -1;
    if (tail > from && cv_read_all(copy->data, to + (from - address), tail - from, (off_t)from) != (ssize_t)(tail - from))
        return -1;
    for (uint64_t at = from; at < tail; at += CV_BLOCK)
        if (!is_right(copy, at / CV_BLOCK, words[at / CV_BLOCK - first], to + (at - address)))
            return -1;
    if (end > tail && tail >= from && !read_edge(copy, tail, end, words[run - 1], to + (tail - address)))
        return -1;
    if (era_is_settled(copy->proved))
        for (uint64_t i = 0; i < run; i++)
            prove(copy->proved, first + i);
    return (ssize_t)(end - address);
}

ssize_t cv_copy_read(struct cv_copy *copy, void *data, uint64_t size, uint64_t address, bool look)
{
    if (look && !look_at_data(copy))
        return -1;
    uint64_t run = proved_run(copy, address, address + size);
    if (!run)
        return read_and_prove(copy, data, address, address + size);
    return cv_read_all(copy->data, data, run, (off_t)address) == (ssize_t)run ? (ssize_t)run : -1;
}

/* ---- Putting. ---- */

/* Writes a batch of blocks and then their words. Returns how many were missing, or -1 with errno. */
static int64_t put(struct cv_copy *copy, uint64_t first, uint64_t count, const char *bytes, uint64_t size)
{
    uint64_t words[BATCH];
    int64_t  fresh = 0;

    cv_copy_words(copy, first, count, words);
    for (uint64_t i = 0; i < count; i++)
        fresh += !words[i];
    if (!fresh)
        return 0; /* another process put them there meanwhile */
    if (cv_write_all(copy->data, bytes, size, (off_t)(first * CV_BLOCK)))
        return -1;
    for (uint64_t i = 0; i < count; i++)
        words[i] = cv_copy_word(copy, first + i, bytes + i * CV_BLOCK, size_of(copy, first + i));
    if (cv_write_all(copy->map, words, count * sizeof *words, (off_t)(CV_COPY_HEAD + first * sizeof *words)))
        return -1;
    return fresh;
}

int64_t cv_copy_put(struct cv_copy *copy, uint64_t address, const void *data, uint64_t size)
{
    uint64_t first = address / CV_BLOCK, count = blocks_of(size), taken = count * CV_BLOCK;
    int64_t  fresh = 0;

    if (!cv_store_take(copy->store, taken) &&
        (!cv_copy_evict(copy->store, taken) || !cv_store_take(copy->store, taken))) {
        errno = EDQUOT;
        return -1;
    }
    for (uint64_t done = 0; done < count; done += BATCH) {
        uint64_t part = least(BATCH, count - done), from = done * CV_BLOCK;
        int64_t  more = put(copy, first + done, part, (const char *)data + from, least(part * CV_BLOCK, size - from));
        if (more < 0) {
            cv_store_give(copy->store, taken - (uint64_t)fresh * CV_BLOCK);
            return -1;
        }
        fresh += more;
    }
    cv_store_give(copy->store, taken - (uint64_t)fresh * CV_BLOCK);
    return fresh * CV_BLOCK;
}

/* ---- Who has the copy open. ---- */

void cv_copy_close(struct cv_copy *copy)
{
    if (copy->data >= 0)
        close(copy->data);
    if (copy->map >= 0)
        close(copy->map); /* and with it our part of the lock */
    copy->data = copy->map = -1;
}

void cv_copy_hold(struct cv_copy *copy)
{
    atomic_fetch_add(&copy->users, 1);
}

void cv_copy_release(struct cv_copy *copy)
{
    if (atomic_fetch_sub(&copy->users, 1) != 1)
        return;
    cv_copy_close(copy);
    if (copy->base >= 0)
        close(copy->base);
    free(copy->proved);
    free(copy);
}
