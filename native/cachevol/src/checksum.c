#include "checksum.h"

#include <string.h>

#define ODD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 divided by the golden ratio; odd, so that a product keeps all bits */

static uint64_t turn(uint64_t value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

void cv_sum_start(struct cv_sum *sum)
{
    for (unsigned i = 0; i < 8; i++)
        sum->lane[i] = ODD * (2 * i + 1);
    sum->total = 0;
}

static void whole_blocks(uint64_t lane[8], const unsigned char *at, size_t blocks)
{
    uint64_t l0 = lane[0], l1 = lane[1], l2 = lane[2], l3 = lane[3];
    uint64_t l4 = lane[4], l5 = lane[5], l6 = lane[6], l7 = lane[7];

    for (; blocks > 0; blocks--, at += CV_SUM_BLOCK) {
        uint64_t w[8];
        memcpy(w, at, sizeof w);
        l0 = turn((l0 ^ w[0]) * ODD, 29);
        l1 = turn((l1 ^ w[1]) * ODD, 29);
        l2 = turn((l2 ^ w[2]) * ODD, 29);
        l3 = turn((l3 ^ w[3]) * ODD, 29);
        l4 = turn((l4 ^ w[4]) * ODD, 29);
        l5 = turn((l5 ^ w[5]) * ODD, 29);
        l6 = turn((l6 ^ w[6]) * ODD, 29);
        l7 = turn((l7 ^ w[7]) * ODD, 29);
    }
    lane[0] = l0, lane[1] = l1, lane[2] = l2, lane[3] = l3;
    lane[4] = l4, lane[5] = l5, lane[6] = l6, lane[7] = l7;
}

void cv_sum_update(struct cv_sum *sum, const void *data, size_t size)
{
    const unsigned char *at     = data;
    size_t               blocks = size / CV_SUM_BLOCK, rest = size % CV_SUM_BLOCK;

    whole_blocks(sum->lane, at, blocks);
    if (rest) {
        unsigned char last[CV_SUM_BLOCK] = {0};
        memcpy(last, at + blocks * CV_SUM_BLOCK, rest);
        whole_blocks(sum->lane, last, 1);
    }
    sum->total += size;
}

uint64_t cv_sum_finish(const struct cv_sum *sum)
{
    uint64_t all = sum->total * ODD;

    for (int i = 0; i < 8; i++)
        all = turn((all ^ sum->lane[i]) * ODD, 31);
    all ^= all >> 33;
    return all * ODD;
}

uint64_t cv_sum(const void *data, size_t size)
{
    struct cv_sum sum;

    cv_sum_start(&sum);
    cv_sum_update(&sum, data, size);
    return cv_sum_finish(&sum);
}
