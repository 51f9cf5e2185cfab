/*
 * Data that can be checked. Every 8-byte word of a file is determined by the
 * seed, by its owner and by its offset in the file, so data of another place,
 * another file or another run is recognised. In a file per process the owner
 * is the number of the file; in a shared file the offset says it all and the
 * owner is 0.
 */
#ifndef IOKERNEL_PATTERN_H
#define IOKERNEL_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/* What a write carries; the letters of IOR's -l. */
enum data_mode {
    DATA_STAMPED,   /* i, o: a random buffer whose blocks of 4 KiB each begin with a number of their own */
    DATA_RANDOM,    /* r: every byte anew in each transfer */
    DATA_CONSTANT,  /* t: the same random buffer over and over */
    DATA_CHECKABLE, /* -G, -W, -R: pattern_fill */
};

struct data_source {
    enum data_mode mode;
    int64_t owner, seed;
    double compressible; /* share of each block that is zero, from 0 */
    double repeated;     /* share of the blocks that repeat others, from 0 */
};

/* A seed that no other run has: 31 bits. */
int64_t data_salt(void);

/* Fills a buffer with random bytes once, before anything is timed. */
void data_fill(const struct data_source *d, void *buffer, int64_t length);

/*
 * Makes a buffer ready for the write at an offset. A stamp of 8 bytes per block costs what IOR's -l costs, and
 * keeps storage from storing equal blocks once.
 */
void data_prepare(const struct data_source *d, void *buffer, int64_t length, int64_t offset);

/* offset must be a multiple of 8 */
void pattern_fill(void *buffer, int64_t length, int64_t offset, int64_t owner, int64_t seed);
bool pattern_matches(const void *buffer, int64_t length, int64_t offset, int64_t owner, int64_t seed);

/* Spoils a buffer before a read, so that a read that delivers nothing is noticed. */
void pattern_spoil(void *buffer, int64_t length);

#endif
