/* TFRecord: length (8 bytes, little endian), masked CRC of it (4), content, masked CRC of the content (4). */
#include "dlkernel.h"

#include <string.h>

static uint32_t read32(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Collect `want` bytes in `head`; return how many were taken. */
static size_t collect(struct dlkernel_tfrecord *s, const unsigned char *bytes, size_t size, uint32_t want)
{
    size_t take = want - s->have < size ? want - s->have : size;
    memcpy(s->head + s->have, bytes, take);
    s->have += (uint32_t)take;
    return take;
}

int dlkernel_tfrecord_feed(struct dlkernel_tfrecord *s, const unsigned char *bytes, size_t size)
{
    while (size) {
        size_t take;
        if (s->part == 0) {
            take = collect(s, bytes, size, 12);
            if (s->have == 12) {
                if (read32(s->head + 8) != dlkernel_masked(dlkernel_crc32c(0, s->head, 8)))
                    return DLKERNEL_BAD_LENGTH;
                s->length = (uint64_t)read32(s->head) | (uint64_t)read32(s->head + 4) << 32;
                s->done = 0;
                s->crc = 0;
                s->have = 0;
                s->part = s->length ? 1 : 2;
            }
        } else if (s->part == 1) {
            uint64_t left = s->length - s->done;
            take = left < size ? (size_t)left : size;
            if (s->check)
                s->crc = dlkernel_crc32c(s->crc, bytes, take);
            s->done += take;
            if (s->done == s->length)
                s->part = 2;
        } else {
            take = collect(s, bytes, size, 4);
            if (s->have == 4) {
                if (s->check && read32(s->head) != dlkernel_masked(s->crc))
                    return DLKERNEL_BAD_CONTENT;
                s->have = 0;
                s->part = 0;
                s->records++;
                s->payload += s->length;
                s->offset += s->length + 16;
            }
        }
        bytes += take;
        size -= take;
    }
    return DLKERNEL_SOUND;
}
