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

/* offset must be a multiple of 8 */
void pattern_fill(void *buffer, int64_t length, int64_t offset, int64_t owner, int64_t seed);
bool pattern_matches(const void *buffer, int64_t length, int64_t offset, int64_t owner, int64_t seed);

/* Spoils a buffer before a read, so that a read that delivers nothing is noticed. */
void pattern_spoil(void *buffer, int64_t length);

#endif
