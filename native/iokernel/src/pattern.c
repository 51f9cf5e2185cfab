#include "pattern.h"

#include <string.h>

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
