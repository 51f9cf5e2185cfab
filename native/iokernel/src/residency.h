/*
 * What the page cache holds of a file: whether a read can be called cold.
 */
#ifndef IOKERNEL_RESIDENCY_H
#define IOKERNEL_RESIDENCY_H

#include <stdbool.h>
#include <stdint.h>

struct residency {
    int64_t file;        /* bytes of the file */
    int64_t resident;    /* of these in the page cache; pages count whole, up to the size of the file */
    int64_t dirty;       /* of these not yet written back; -1 when the method cannot tell */
    const char *method;  /* "cachestat" (Linux 6.5), "mincore", or "none" when neither works */
    bool regular;        /* a regular file: anything else has no size */
    bool memory_backed;  /* the file system is memory: tmpfs, ramfs or hugetlbfs */
};

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

/* True when the path is on a file system whose space belongs to this node alone. */
bool residency_node_local(const char *path);

#endif
