/* Counts for one process, written as one JSON line to HDF5_CACHE_STATS when the library ends. The file is there, and
 * its time of change now, from when the connector is loaded: a program may end past the library's own end. */
#ifndef CACHEVOL_STATS_H
#define CACHEVOL_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#define CV_STATS(X)                                                                                          \
    X(staged_bytes)      /* written to the node-local log */                                                 \
    X(staged_writes)                                                                                         \
    X(staged_ns)         /* that the program waited for that */                                              \
    X(migrated_bytes)    /* from the log to the base file, in the background */                              \
    X(migrated_writes)   /* after fusion */                                                                  \
    X(migrated_ns)                                                                                           \
    X(direct_bytes)      /* written straight to the base file while staging was on */                        \
    X(direct_fast_base)  /* writes that went direct because the base storage is as fast */                   \
    X(direct_full)       /* because the node-local storage or the budget was full */                         \
    X(backpressure_ns)   /* that the program waited for room in the log */                                   \
    X(drain_ns)          /* that it waited at flush, close, or before a read */                              \
    X(migration_errors)                                                                                      \
    X(staged_together)   /* collective writes of a parallel file that were staged */                         \
    X(staged_alone)      /* independent writes of a parallel file that were staged */                        \
    X(checkpoints)       /* points made at which the file is whole, besides flush and close */               \
    X(checkpoint_ns)     /* that the program waited for them */                                              \
    X(forced)            /* times that data went to the file before it was whole: no room, fork, descriptor */ \
    X(files_staged)                                                                                          \
    X(replayed_logs)                                                                                         \
    X(hit_bytes)         /* read from the node-local copy */                                                 \
    X(hit_ns)                                                                                                \
    X(miss_bytes)        /* read from the base file while a copy was kept */                                 \
    X(filled_bytes)      /* copied to the node-local storage */                                              \
    X(fill_skipped_bytes) /* not copied: memory bound, budget or a fast base storage */                      \
    X(fill_errors)                                                                                           \
    X(prefetched_bytes)                                                                                      \
    X(evicted_files)                                                                                         \
    X(evicted_bytes)                                                                                         \
    X(changed_files)     /* copies given up because the file changed while it was open */                    \
    X(dropped_copies)    /* taken away: damaged, or of files that changed or are gone */                     \
    X(damaged_copies)    /* given up because a block was not what had been put there */                      \
    X(files_cached)                                                                                          \
    X(files_shared)      /* opened by MPI, with neighbours on other nodes */                                 \
    X(neighbour_bytes)   /* read from a neighbour's copy */                                                  \
    X(neighbour_damaged) /* reads from one that were not what it had told of */                              \
    X(neighbour_ns)                                                                                          \
    X(neighbour_late)    /* times that one did not answer in time */                                         \
    X(asked)             /* calls of the original's interface (H5Dprefetch and the like) */

struct cv_stats {
#define FIELD(name) _Atomic uint64_t name;
    CV_STATS(FIELD)
#undef FIELD
};

extern struct cv_stats cv_stats;

#define CV_COUNT(name, amount) atomic_fetch_add_explicit(&cv_stats.name, (uint64_t)(amount), memory_order_relaxed)

void cv_stats_begin(const char *path);
void cv_stats_write(const char *path);

#endif
