/* Running estimates of bandwidths, in bytes a second; 0 while unknown. One set for the process. */
#ifndef CACHEVOL_RATES_H
#define CACHEVOL_RATES_H

#include <stdatomic.h>
#include <stdint.h>

#define CV_RATE_BYTES (UINT64_C(1) << 18) /* shorter transfers say more about latency */

struct cv_rate {
    _Atomic uint64_t value;
};

static inline void cv_rate_note(struct cv_rate *rate, uint64_t bytes, uint64_t ns)
{
    if (bytes < CV_RATE_BYTES || !ns)
        return;
    uint64_t now = (uint64_t)((double)bytes * 1e9 / (double)ns), old = atomic_load(&rate->value);
    atomic_store(&rate->value, old ? (3 * old + now) / 4 : now);
}

static inline uint64_t cv_rate(struct cv_rate *rate)
{
    return atomic_load(&rate->value);
}

#endif
