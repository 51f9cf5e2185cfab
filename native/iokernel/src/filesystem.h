/*
 * What kind of file system holds a file, as far as caching goes.
 */
#ifndef IOKERNEL_FILESYSTEM_H
#define IOKERNEL_FILESYSTEM_H

#include <stdbool.h>

/* Where this node keeps the data of a file that it has read. */
enum caching {
    CACHING_PAGES,      /* in the page cache of the file itself */
    CACHING_BELOW,      /* in the page cache of a file below it: a mapping shows that one, cachestat does not */
    CACHING_MEMORY,     /* the file system is memory: tmpfs, ramfs, hugetlbfs, or an overlay whose upper layer is */
    CACHING_FUSE,       /* perhaps in the memory of its FUSE server */
    CACHING_ENCRYPTED,  /* also encrypted, in the page cache of the file below (eCryptfs) */
    CACHING_OWN,        /* in a cache of the file system's own: ZFS, GPFS */
    CACHING_UNKNOWN,    /* a file system that this program does not know */
};

/* Caching of an open file. */
enum caching filesystem_caching(int fd);

/* Why the page cache does not tell what this node holds of such a file; NULL where it does tell. */
const char *filesystem_untold(enum caching caching);

/* True when the path is on a file system whose space belongs to this node alone. */
bool filesystem_node_local(const char *path);

#endif
