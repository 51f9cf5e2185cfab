#include "superblock.h"
#include "store.h"

#include <stdint.h>
#include <string.h>

/* HDF5 file format specification 3.0, II.A: the fields up to the sizes of addresses are the same in 2 and 3. */
#define VERSION_AT 8
#define OFFSETS_AT 9
#define FLAGS_AT   11
#define OPEN_FLAGS (1u | 4u) /* opened for writing; for one writer and many readers */

static uint32_t turned(uint32_t value, int bits)
{
    return (value << bits) | (value >> (32 - bits));
}

/* The checksum of HDF5's metadata: lookup3 by Bob Jenkins (public domain), for bytes, begun with 0. */
static uint32_t checksum(const unsigned char *at, size_t size)
{
    uint32_t a = UINT32_C(0xdeadbeef) + (uint32_t)size, b = a, c = a;

    for (; size > 12; size -= 12, at += 12) {
        uint32_t word[3];
        for (int i = 0; i < 3; i++)
            word[i] = at[4 * i] | (uint32_t)at[4 * i + 1] << 8 | (uint32_t)at[4 * i + 2] << 16 |
                      (uint32_t)at[4 * i + 3] << 24;
        a += word[0], b += word[1], c += word[2];
        a -= c, a ^= turned(c, 4), c += b;
        b -= a, b ^= turned(a, 6), a += c;
        c -= b, c ^= turned(b, 8), b += a;
        a -= c, a ^= turned(c, 16), c += b;
        b -= a, b ^= turned(a, 19), a += c;
        c -= b, c ^= turned(b, 4), b += a;
    }
    uint32_t *word[3] = {&a, &b, &c};
    for (size_t i = 0; i < size; i++)
        *word[i / 4] += (uint32_t)at[i] << (8 * (i % 4));
    if (!size)
        return c;
    c ^= b, c -= turned(b, 14);
    a ^= c, a -= turned(c, 11);
    b ^= a, b -= turned(a, 25);
    c ^= b, c -= turned(b, 16);
    a ^= c, a -= turned(c, 4);
    b ^= a, b -= turned(a, 14);
    c ^= b, c -= turned(b, 24);
    return c;
}

static void put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

bool cv_superblock_can_be_marked(const char *data, uint64_t size)
{
    return size > FLAGS_AT && !memcmp(data, signature, sizeof signature) && data[VERSION_AT] >= 3;
}

int cv_superblock_release(int file)
{
    unsigned char              block[64], sum[4];

    /* It lies at 0, 512, 1024, 2048 and so on. */
    for (off_t at = 0; cv_read_all(file, block, sizeof block, at) > (ssize_t)sizeof signature;
         at = at ? 2 * at : 512) {
        if (memcmp(block, signature, sizeof signature))
            continue;
        size_t length = 12 + 4u * block[OFFSETS_AT]; /* four addresses, then the checksum */
        if (block[VERSION_AT] != 3 || block[OFFSETS_AT] > 8 || !(block[FLAGS_AT] & OPEN_FLAGS))
            return 0;
        put32(sum, checksum(block, length));
        if (memcmp(sum, block + length, sizeof sum))
            return 0;
        block[FLAGS_AT] &= (unsigned char)~OPEN_FLAGS;
        put32(block + length, checksum(block, length));
        return cv_write_all(file, block, length + 4, at);
    }
    return 0;
}
