// SHA-256 and HMAC (FIPS 180-4, RFC 2104), to prove that this process knows its ticket's secret.
#ifndef FAIRSHARE_SHA256_H
#define FAIRSHARE_SHA256_H

#include <stddef.h>

void fs_hmac(const unsigned char *key, size_t key_len, const unsigned char *message, size_t length,
             unsigned char out[32]);

#endif
