/* What the files of the neighbours share: the directory of who has what (mpi_directory.c), transfers that end in time
   (mpi_transfer.c), and reading by both of them (mpi_peers.c). */
#ifndef CACHEVOL_MPI_PARTS_H
#define CACHEVOL_MPI_PARTS_H

#include "mpi_peers.h"
#include "mpi_window.h"
#include "rates.h"

#include <pthread.h>

#define NOTES_MOST 1024 /* ranges that may wait to be told of */

struct range {
    uint64_t address, size;
};

struct cv_peers {
    struct cv_windows *windows;
    struct cv_copy    *copy;
    pthread_t          thread; /* that opened the file: the only one that calls MPI for it */
    pid_t              process;
    bool               broken; /* MPI reported an error */
    uint16_t           node;   /* this process's, from 1 */
    int               *ranks;  /* by node: those of node n are ranks[first[n]] up to ranks[first[n + 1]] */
    int               *first;
    uint64_t          *asked;  /* for each slot: ticks until which what it did not tell is not asked for again */
    uint64_t          *shunned_until, *shunned_for; /* ns, for each rank */
    uint64_t          *told;   /* for each rank: 1 + where in its directory it was last told something */
    struct range       notes[NOTES_MOST];
    unsigned           noted;
    struct cv_rate     rate;
    unsigned           skipped;
};

static inline uint64_t blocks_of(uint64_t size)
{
    return (size + CV_BLOCK - 1) / CV_BLOCK;
}

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* An entry of the directory: a node that has the block, and most of the block's word, by which what comes from there can
   be told from what should. */
#define SUM_BITS 48

static inline uint64_t entry_of(uint16_t node, uint64_t word)
{
    return (uint64_t)node << SUM_BITS | (word & ((UINT64_C(1) << SUM_BITS) - 1));
}

static inline uint16_t entry_node(uint64_t entry)
{
    return (uint16_t)(entry >> SUM_BITS);
}

/* Whether transfers may begin: in the thread that opened the file, where none too many are late. */
bool cv_peers_usable(struct cv_peers *peers);
/* Whether a process is passed over, since it did not answer; what it did this time. */
bool cv_peers_shunned(const struct cv_peers *peers, int rank);
void cv_peers_judge(struct cv_peers *peers, int rank, bool answered);
/* Whether a transfer ends before `until` (ticks). */
bool cv_peers_ends(struct cv_peers *peers, cv_request *request, uint64_t until);

/* Tells of what the node's copy holds already; its processes share the work, and all take part. */
void cv_directory_tell_all(struct cv_peers *peers);
/* Tells of those ranges, or parts of them, that were noted and have come into the copy. */
void cv_directory_tell_noted(struct cv_peers *peers);
/* Asks for the entries of one slot. */
void cv_directory_look_up(struct cv_peers *peers, uint64_t slot);
/* Makes sure that all that was told so far can be read. */
void cv_directory_settle(struct cv_peers *peers);

#endif
