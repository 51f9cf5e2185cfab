#include "pattern.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"

/* odd, so that distinct offsets give distinct words; 2^64 divided by the golden ratio */
#define STEP UINT64_C(0x9e3779b97f4a7c15)

/* the finalizer of splitmix64 (public domain, Vigna 2015): every input bit reaches every output bit */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t first_word(int64_t offset, int64_t owner, int64_t seed)
{
    return mix(mix((uint64_t)seed + STEP) + (uint64_t)owner) + (uint64_t)(offset / 8) * STEP;
}

void pattern_fill(void *buffer, int64_t length, int64_t offset, int64_t owner, int64_t seed)
{
    uint64_t word = first_word(offset, owner, seed);
    unsigned char *at = buffer;
    int64_t words = length / 8;
    for (int64_t i = 0; i < words; i++) {
        uint64_t value = word + (uint64_t)i * STEP;
        memcpy(at + 8 * i, &value, 8);
    }
    uint64_t value = word + (uint64_t)words * STEP;
    memcpy(at + 8 * words, &value, (size_t)(length % 8));
}

bool pattern_matches(const void *buffer, int64_t length, int64_t offset, int64_t owner, int64_t seed)
{
    uint64_t word = first_word(offset, owner, seed), difference = 0;
    const unsigned char *at = buffer;
    int64_t words = length / 8;
    for (int64_t i = 0; i < words; i++) {
        uint64_t value;
        memcpy(&value, at + 8 * i, 8);
        difference |= value ^ (word + (uint64_t)i * STEP);
    }
    uint64_t value = word + (uint64_t)words * STEP;
    return difference == 0 && memcmp(at + 8 * words, &value, (size_t)(length % 8)) == 0;
}

void pattern_spoil(void *buffer, int64_t length)
{
    unsigned char *at = buffer;
    for (int64_t i = 0; i < length; i += 512)
        at[i] = (unsigned char)~at[i];
}

int64_t data_salt(void)
{
    uint32_t salt;
    if (getrandom(&salt, sizeof salt, 0) != sizeof salt)
        salt = (uint32_t)mix((uint64_t)clock_ns() + (uint64_t)getpid());
    return salt & INT32_MAX;
}

#define BLOCK 4096 /* what storage compares: the page of most file systems */

/* Random bytes, and zeros at the end of each block. */
static void fill_blocks(unsigned char *at, int64_t length, uint64_t state, double compressible)
{
    const int64_t random = BLOCK - (int64_t)(compressible * BLOCK) / 8 * 8;
    for (int64_t block = 0; block < length; block += BLOCK) {
        int64_t size = length - block < BLOCK ? length - block : BLOCK, end = random < size ? random : size;
        for (int64_t i = 0; i < end; i += 8) {
            uint64_t value = mix(state += STEP);
            memcpy(at + block + i, &value, (size_t)(end - i < 8 ? end - i : 8));
        }
        memset(at + block + end, 0, (size_t)(size - end));
    }
}

void data_fill(const struct data_source *d, void *buffer, int64_t length)
{
    fill_blocks(buffer, length, first_word(0, d->owner, d->seed), d->compressible);
}

/* Does the block at this offset repeat others? The same ones in every file of a run. */
static bool repeats(const struct data_source *d, int64_t offset)
{
    return d->repeated > 0 && (double)(mix((uint64_t)offset / BLOCK + STEP) >> 11) < d->repeated * 0x1p53;
}

void data_prepare(const struct data_source *d, void *buffer, int64_t length, int64_t offset)
{
    unsigned char *at = buffer;
    if (d->mode == DATA_CONSTANT)
        return;
    if (d->mode == DATA_CHECKABLE) {
        pattern_fill(buffer, length, offset, d->owner, d->seed);
        return;
    }
    const uint64_t base = first_word(0, d->owner, d->seed);
    for (int64_t block = 0; block < length; block += BLOCK) {
        int64_t left = length - block;
        /* a block of its own has the number of its offset, one that repeats others that of its place in the buffer */
        uint64_t number = repeats(d, offset + block) ? (uint64_t)block : base + (uint64_t)(offset + block) / 8 * STEP;
        if (d->mode == DATA_RANDOM)
            fill_blocks(at + block, left < BLOCK ? left : BLOCK, mix(number), d->compressible);
        else
            memcpy(at + block, &number, (size_t)(left < 8 ? left : 8));
    }
}
