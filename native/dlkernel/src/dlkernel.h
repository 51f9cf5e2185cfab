/* What the embedded deep-learning loader does to every byte that it reads. Sizes are bytes. */
#ifndef DLKERNEL_H
#define DLKERNEL_H

#include <stddef.h>
#include <stdint.h>

#define DLKERNEL_API __attribute__((visibility("default")))
#define DLKERNEL_ABI 1

DLKERNEL_API int dlkernel_abi(void);

/* CRC-32C (Castagnoli) of `size` bytes, continued from `crc` (0 at the start). */
DLKERNEL_API uint32_t dlkernel_crc32c(uint32_t crc, const unsigned char *bytes, size_t size);

/* TFRecord's mask of a CRC: rotated right by 15 bits, plus a constant. */
DLKERNEL_API uint32_t dlkernel_masked(uint32_t crc);

/* Where a scan of a TFRecord file stands: a file is fed piece by piece, records may span pieces.
 * All zero at the start of a file. */
struct dlkernel_tfrecord {
    uint64_t records;  /* whole and sound records so far */
    uint64_t payload;  /* their bytes of content */
    uint64_t offset;   /* of the record that is being read, from the start of the file */
    uint64_t length;   /* content of the record that is being read */
    uint64_t done;     /* bytes of that content seen so far */
    uint32_t crc;      /* of that content so far */
    uint32_t have;     /* bytes in `head` */
    uint32_t part;     /* 0: length and its CRC; 1: content; 2: CRC of the content */
    uint32_t check;    /* 0: do not check CRCs of contents */
    unsigned char head[16];
};

enum { DLKERNEL_SOUND = 0, DLKERNEL_BAD_LENGTH = 1, DLKERNEL_BAD_CONTENT = 2 };

/* Take the next `size` bytes of the file. Stops at the first damaged record and says what is damaged. */
DLKERNEL_API int dlkernel_tfrecord_feed(struct dlkernel_tfrecord *scan, const unsigned char *bytes, size_t size);

/* Where a scan of a CSV file of numbers stands. All zero at the start of a file. */
struct dlkernel_csv {
    uint64_t rows;      /* whole rows so far */
    uint64_t columns;   /* numbers in the first row */
    uint64_t values;    /* numbers in the row that is being read */
    uint64_t have;      /* characters of the number that is being read */
    char word[64];
    double sum;         /* of all numbers: they are really parsed */
};

enum { DLKERNEL_CSV_SOUND = 0, DLKERNEL_CSV_NO_NUMBER = 1, DLKERNEL_CSV_COLUMNS = 2 };

/* Take the next `size` bytes of the file; `last` at its end. Stops at the first damaged row. */
DLKERNEL_API int dlkernel_csv_feed(struct dlkernel_csv *scan, const char *bytes, size_t size, int last);

#endif
