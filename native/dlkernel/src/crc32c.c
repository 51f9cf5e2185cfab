/* CRC-32C: by the processor's own instruction where it has one, else by tables of eight bytes at a time. */
#include "dlkernel.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

int dlkernel_abi(void) { return DLKERNEL_ABI; }

uint32_t dlkernel_masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

#if !(defined(__aarch64__) && defined(__ARM_FEATURE_CRC32))
static uint32_t tables[8][256];
static int tables_made;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
        tables[0][byte] = crc;
    }
    for (int row = 1; row < 8; row++)
        for (int byte = 0; byte < 256; byte++)
            tables[row][byte] = (tables[row - 1][byte] >> 8) ^ tables[0][tables[row - 1][byte] & 0xff];
    __atomic_store_n(&tables_made, 1, __ATOMIC_RELEASE);
}

static uint32_t by_table(uint32_t crc, const unsigned char *bytes, size_t size)
{
    /* Threads that come at once write the same numbers. */
    if (!__atomic_load_n(&tables_made, __ATOMIC_ACQUIRE))
        make_tables();
    for (; size >= 8; bytes += 8, size -= 8) {
        crc ^= (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][(crc >> 8) & 0xff] ^ tables[5][(crc >> 16) & 0xff] ^
              tables[4][crc >> 24] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^
              tables[0][bytes[7]];
    }
    for (; size; bytes++, size--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xff];
    return crc;
}
#endif

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *bytes,
                                                                 size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; bytes++, size--)
        crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
static uint32_t by_instruction(uint32_t crc, const unsigned char *bytes, size_t size)
{
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        crc = __crc32cd(crc, word);
    }
    for (; size; bytes++, size--)
        crc = __crc32cb(crc, *bytes);
    return crc;
}
#endif

uint32_t dlkernel_crc32c(uint32_t crc, const unsigned char *bytes, size_t size)
{
    crc = ~crc;
#if defined(__x86_64__)
    return ~(__builtin_cpu_supports("sse4.2") ? by_instruction(crc, bytes, size) : by_table(crc, bytes, size));
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
    return ~by_instruction(crc, bytes, size);
#else
    return ~by_table(crc, bytes, size);
#endif
}
