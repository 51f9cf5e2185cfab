/*
 * What the page cache holds of a file: whether a read can be called cold.
 */
#ifndef IOKERNEL_RESIDENCY_H
#define IOKERNEL_RESIDENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "filesystem.h"

struct residency {
    int64_t file;         /* bytes of the file */
    int64_t resident;     /* of these in the page cache; pages count whole, up to the size of the file */
    int64_t dirty;        /* of these not yet written back; -1 when the method cannot tell */
    const char *method;   /* "cachestat" (Linux 6.5), "mincore", or "none" where neither tells */
    bool regular;         /* a regular file: anything else has no size */
    bool foreign;         /* this process may not write the file, so mincore tells it nothing */
    enum caching caching; /* where this node keeps the data */
};

/* Why it is unknown what this node's memory held of a file; NULL where it is known. */
const char *residency_unknown(const struct residency *r);

bool residency_has_cachestat(void);

/* Measures an existing file; 0 or an errno. */
int residency_measure(const char *path, struct residency *r);

/*
 * Writes a file back and asks the kernel to drop its pages. Pages in use at
 * the moment escape, so it asks again a few times while some remain. What is
 * left is for residency_measure to say: memory file systems drop nothing.
 * Returns 0 or an errno.
 */
int residency_evict(const char *path);

#endif
