/* A 64-bit checksum that runs at memory speed: eight independent lanes of multiply and rotate over
   8-byte words. It finds torn and damaged data; it is no protection against an attacker. */
#ifndef CACHEVOL_CHECKSUM_H
#define CACHEVOL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define CV_SUM_BLOCK 64 /* bytes; every update but the last is a multiple of it */

struct cv_sum {
    uint64_t lane[8];
    uint64_t total; /* bytes so far */
};

void     cv_sum_start(struct cv_sum *sum);
void     cv_sum_update(struct cv_sum *sum, const void *data, size_t size);
uint64_t cv_sum_finish(const struct cv_sum *sum);
uint64_t cv_sum(const void *data, size_t size);

#endif
