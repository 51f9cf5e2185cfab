#include "mpi_peers.h"
#include "checksum.h"
#include "config.h"
#include "fill.h"
#include "mpi_window.h"
#include "rates.h"
#include "stats.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHUN       4                       /* times its patience that a process passes over one which did not answer, */
#define SHUN_MOST  UINT64_C(60000000000)   /* doubled each time, up to so many ns */
#define LATE_MOST  16                      /* transfers that may be late before no more are begun */
#define NOTES_MOST 1024                    /* ranges that may wait to be told of */
#define PROBE      64                      /* reads after which neighbours slower than the base storage are tried again */
#define NOBODY     UINT64_C(250000000)     /* ns for which the answer that nobody has a block holds */
#define BATCH      UINT64_C(64)            /* slots whose entries are sent together when a file is opened */

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
    uint16_t          *known;  /* directory entries seen, for each block */
    uint64_t          *asked;  /* for each slot: ticks until which what it did not tell is not asked for again */
    uint64_t          *shunned_until, *shunned_for; /* ns, for each rank */
    uint64_t          *told;   /* for each rank: 1 + where in its directory it was last told something */
    struct range       notes[NOTES_MOST];
    unsigned           noted;
    struct cv_rate     rate;
    unsigned           skipped;
};

static uint64_t blocks_of(uint64_t size)
{
    return (size + CV_BLOCK - 1) / CV_BLOCK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Who is on which node. ---- */

struct place {
    uint64_t node, file; /* what tells the node-local folder, and the file, from others; file is 0 without a copy */
};

static struct place place_of(const struct cv_copy *copy)
{
    struct stat  folder;
    struct place place = {0, 0};

    if (!copy || !cv_config.patience || fstat(copy->store->budget, &folder))
        return place;
    struct {
        char     boot[40];
        uint64_t device, inode;
    } node;
    memset(&node, 0, sizeof node);
    snprintf(node.boot, sizeof node.boot, "%s", cv_boot());
    node.device = folder.st_dev, node.inode = folder.st_ino;
    /* Not device and path: a file system may be mounted elsewhere on another node. */
    const uint64_t file[] = {copy->head->size, (uint64_t)copy->head->mtime, (uint64_t)copy->head->mtime_ns,
                             copy->head->first_sum};
    place.node = cv_sum(&node, sizeof node);
    place.file = cv_sum(file, sizeof file) | 1;
    return place;
}

/* Numbers the nodes from 1 in the order of their first processes. Returns how many there are; 0 where the processes
   cannot share the file. */
static int number(const struct place *places, int size, int *node_of)
{
    int nodes = 0;

    for (int i = 0; i < size; i++) {
        if (!places[i].file || places[i].file != places[0].file)
            return 0;
        node_of[i] = 0;
        for (int j = 0; j < i && !node_of[i]; j++)
            if (places[j].node == places[i].node)
                node_of[i] = node_of[j];
        if (!node_of[i])
            node_of[i] = ++nodes;
    }
    return nodes;
}

static void release(struct cv_peers *peers)
{
    if (!peers)
        return;
    free(peers->ranks);
    free(peers->first);
    free(peers->known);
    free(peers->asked);
    free(peers->shunned_until);
    free(peers->shunned_for);
    free(peers->told);
    free(peers);
}

static struct cv_peers *prepare(struct cv_copy *copy, int size, int nodes)
{
    struct cv_peers *peers = calloc(1, sizeof *peers);

    if (!peers)
        return NULL;
    peers->copy          = copy;
    peers->thread        = pthread_self();
    peers->process       = getpid();
    peers->ranks         = calloc((size_t)size, sizeof *peers->ranks);
    peers->first         = calloc((size_t)nodes + 2, sizeof *peers->first);
    peers->known         = calloc((size_t)blocks_of(copy->size), sizeof *peers->known);
    peers->asked         = calloc((size_t)(blocks_of(copy->size) / CV_SLOT + 1), sizeof *peers->asked);
    peers->shunned_until = calloc((size_t)size, sizeof *peers->shunned_until);
    peers->shunned_for   = calloc((size_t)size, sizeof *peers->shunned_for);
    peers->told          = calloc((size_t)size, sizeof *peers->told);
    if (peers->ranks && peers->first && peers->known && peers->asked && peers->shunned_until && peers->shunned_for &&
        peers->told)
        return peers;
    release(peers);
    return NULL;
}

static void list_ranks(struct cv_peers *peers, const int *node_of, int size, int nodes)
{
    int listed = 0;

    for (int node = 1; node <= nodes; node++) {
        peers->first[node] = listed;
        for (int rank = 0; rank < size; rank++)
            if (node_of[rank] == node)
                peers->ranks[listed++] = rank;
    }
    peers->first[nodes + 1] = listed;
}

/* ---- The directory. ---- */

static int home_of(const struct cv_windows *windows, uint64_t slot)
{
    return (int)(slot % (uint64_t)windows->size);
}

static intptr_t place_in(const struct cv_windows *windows, uint64_t slot)
{
    return (intptr_t)(slot / (uint64_t)windows->size * CV_SLOT);
}

/* Makes entries of one slot. They only ever grow: all that is done to the directory is MPI_MAX and reading. */
static bool tell(struct cv_peers *peers, uint64_t block, const uint16_t *entries, uint64_t count)
{
    struct cv_windows *windows = peers->windows;
    uint64_t           slot    = block / CV_SLOT;
    int                home    = home_of(windows, slot);
    intptr_t           at      = place_in(windows, slot) + (intptr_t)(block % CV_SLOT);

    if (mpi.Accumulate(entries, (int)count, CV_UINT16, home, at, (int)count, CV_UINT16, CV_MAX, windows->directory))
        peers->broken = true;
    peers->told[home] = (uint64_t)at + 1;
    return !peers->broken;
}

/* Tells of what the node's copy holds already; its processes share the work. All processes take part. */
static void tell_all(struct cv_peers *peers)
{
    struct cv_windows *windows = peers->windows;
    uint16_t          *entries = malloc(BATCH * CV_SLOT * sizeof *entries);
    uint64_t           share = 0, shares = (uint64_t)(peers->first[peers->node + 1] - peers->first[peers->node]);
    uint64_t           blocks = blocks_of(peers->copy->size), used = 0;

    while (peers->ranks[peers->first[peers->node] + (int)share] != windows->rank)
        share++;
    for (uint64_t slot = share; entries && slot < windows->slots; slot += shares) {
        uint16_t *to    = entries + used * CV_SLOT;
        uint64_t  first = slot * CV_SLOT, count = least(CV_SLOT, blocks - first), there = 0;
        for (uint64_t i = 0; i < count; i++) {
            bool     in = atomic_load(&peers->copy->bits[(first + i) / 64]) >> ((first + i) % 64) & 1;
            to[i]       = in ? peers->node : 0;
            there += in;
        }
        if (!there)
            continue;
        if (!tell(peers, first, to, count))
            break;
        if (++used == BATCH) {
            mpi.Win_flush_all(windows->directory);
            used = 0;
        }
    }
    mpi.Win_flush_all(windows->directory);
    mpi.Barrier(windows->comm);
    free(entries);
}

/* Tells of those ranges, or parts of them, that have come into the copy. */
static void tell_noted(struct cv_peers *peers)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < peers->noted; i++) {
        struct range range = peers->notes[i];
        bool         there = true;
        while (range.size && !peers->broken) {
            uint64_t run = cv_copy_run(peers->copy, range.address, range.address + range.size, &there);
            if (!there)
                break;
            for (uint64_t done = 0; done < run;) {
                uint64_t block = (range.address + done) / CV_BLOCK, in_slot = CV_SLOT - block % CV_SLOT;
                uint64_t count = least(in_slot, blocks_of(run - done));
                tell(peers, block, peers->windows->own, count);
                done += count * CV_BLOCK;
            }
            run = least(run, range.size);
            range.address += run, range.size -= run;
        }
        if (range.size)
            peers->notes[kept++] = range;
    }
    peers->noted = kept;
}

void cv_peers_note(struct cv_peers *peers, uint64_t address, uint64_t size)
{
    uint64_t begin = address / CV_BLOCK * CV_BLOCK, end = blocks_of(address + size) * CV_BLOCK;

    if (end > peers->copy->size)
        end = peers->copy->size;
    if (peers->noted && peers->notes[peers->noted - 1].address + peers->notes[peers->noted - 1].size == begin &&
        peers->notes[peers->noted - 1].size < CV_PIECE)
        peers->notes[peers->noted - 1].size += end - begin;
    else {
        if (peers->noted == NOTES_MOST) /* the first is the least likely to come yet: the node may have no room */
            memmove(peers->notes, peers->notes + 1, --peers->noted * sizeof *peers->notes);
        peers->notes[peers->noted++] = (struct range){begin, end - begin};
    }
}

/* ---- Transfers with an end. ---- */

static bool usable(struct cv_peers *peers)
{
    if (peers->broken || peers->windows->gone || !pthread_equal(peers->thread, pthread_self()) ||
        peers->process != getpid())
        return false;
    if (peers->windows->late)
        cv_windows_collect(peers->windows);
    return peers->windows->lates < LATE_MOST;
}

static bool shunned(const struct cv_peers *peers, int rank)
{
    return peers->shunned_until[rank] && cv_ticks() < peers->shunned_until[rank];
}

static void judge(struct cv_peers *peers, int rank, bool answered)
{
    if (answered) {
        peers->shunned_for[rank] = peers->shunned_until[rank] = 0;
        return;
    }
    uint64_t before          = peers->shunned_for[rank];
    peers->shunned_for[rank] = before ? least(2 * before, SHUN_MOST) : least(SHUN * cv_config.patience, SHUN_MOST);
    peers->shunned_until[rank] = cv_ticks() + peers->shunned_for[rank];
    CV_COUNT(neighbour_late, 1);
}

static bool ends(struct cv_peers *peers, cv_request *request, uint64_t until)
{
    for (unsigned tries = 0;; tries++) {
        int ended = 0;
        if (mpi.Test(request, &ended, CV_STATUS_IGNORE)) {
            peers->broken = true;
            return false;
        }
        if (ended)
            return true;
        if (cv_ticks() > until)
            return false;
        if (tries > 50)
            sched_yield();
    }
}

static bool ask(struct cv_peers *peers, int home, intptr_t at, uint64_t count, uint16_t *entries, cv_request *request)
{
    if (mpi.Rget_accumulate(NULL, 0, CV_UINT16, entries, (int)count, CV_UINT16, home, at, (int)count, CV_UINT16,
                            CV_NO_OP, peers->windows->directory, request))
        peers->broken = true;
    return !peers->broken;
}

/* Asks for the entries of one slot. */
static void look_up(struct cv_peers *peers, uint64_t slot)
{
    uint64_t   first = slot * CV_SLOT, count = least(CV_SLOT, blocks_of(peers->copy->size) - first);
    int        home    = home_of(peers->windows, slot);
    bool       asks    = cv_ticks() >= peers->asked[slot] && !shunned(peers, home);
    uint16_t  *entries = asks ? malloc(CV_SLOT * sizeof *entries) : NULL;
    cv_request request = CV_REQUEST_NULL;

    if (!entries)
        return;
    if (!ask(peers, home, place_in(peers->windows, slot), count, entries, &request)) {
        free(entries);
        return;
    }
    bool answered = ends(peers, &request, cv_ticks() + cv_config.patience);
    judge(peers, home, answered);
    if (!answered) {
        cv_windows_late(peers->windows, request, entries, 0);
        return;
    }
    peers->asked[slot] = cv_ticks() + NOBODY;
    for (uint64_t i = 0; i < count; i++)
        if (!peers->known[first + i])
            peers->known[first + i] = entries[i];
    free(entries);
}

/* A process of the node that is expected to answer, or -1. The processes of one node ask different ones. */
static int rank_on(const struct cv_peers *peers, uint16_t node)
{
    int from = peers->first[node], count = peers->first[node + 1] - from;

    for (int i = 0; i < count; i++) {
        int rank = peers->ranks[from + (peers->windows->rank + i) % count];
        if (!shunned(peers, rank))
            return rank;
    }
    return -1;
}

static bool fetch(struct cv_peers *peers, int rank, uint64_t begin, uint64_t end, char *data, uint64_t address, uint64_t size)
{
    bool       full    = cv_ticks() < atomic_load(&peers->copy->full);
    char      *fill    = full ? NULL : cv_fill_buffer(end - begin), *memory = fill ? fill : malloc(end - begin);
    cv_request request = CV_REQUEST_NULL;
    uint64_t   from    = cv_ticks();

    if (!memory)
        return false;
    if (mpi.Rget(memory, (int)(end - begin), CV_BYTE, rank, (intptr_t)begin, (int)(end - begin), CV_BYTE,
                 peers->windows->data, &request)) {
        peers->broken = true;
        if (fill)
            cv_fill_cancel(fill, end - begin);
        else
            free(memory);
        return false;
    }
    bool answered = ends(peers, &request, from + cv_config.patience);
    judge(peers, rank, answered);
    if (!answered) {
        cv_rate_note(&peers->rate, end - begin, 2 * cv_config.patience); /* or longer */
        cv_windows_late(peers->windows, request, memory, fill ? end - begin : 0);
        return false;
    }
    cv_rate_note(&peers->rate, end - begin, cv_ticks() - from);
    CV_COUNT(neighbour_bytes, size);
    CV_COUNT(neighbour_ns, cv_ticks() - from);
    memcpy(data, memory + (address - begin), size);
    if (fill)
        cv_fill(peers->copy, begin, fill, end - begin);
    else
        free(memory);
    return true;
}

uint64_t cv_peers_read(struct cv_peers *peers, char *data, uint64_t *size, uint64_t address, uint64_t base_rate)
{
    uint64_t first = address / CV_BLOCK, last = (address + *size - 1) / CV_BLOCK, run = 1;

    if (!usable(peers))
        return 0;
    tell_noted(peers);
    uint64_t rate = cv_rate(&peers->rate);
    if (cv_config.adaptive && rate && rate < base_rate && ++peers->skipped % PROBE)
        return 0;
    for (uint64_t block = first; block <= last; block++)
        if (!peers->known[block]) {
            look_up(peers, block / CV_SLOT);
            block = (block / CV_SLOT + 1) * CV_SLOT - 1;
        }
    uint16_t node = peers->known[first];
    while (first + run <= last && peers->known[first + run] == node)
        run++;
    uint64_t begin = first * CV_BLOCK, end = least(begin + run * CV_BLOCK, peers->copy->size);
    *size    = least(*size, end - address);
    int rank = !node || node == peers->node || peers->broken ? -1 : rank_on(peers, node);
    return rank >= 0 && fetch(peers, rank, begin, end, data, address, *size) ? *size : 0;
}

void cv_peers_settle(struct cv_peers *peers)
{
    cv_fill_finish();
    memset(peers->asked, 0, (size_t)(blocks_of(peers->copy->size) / CV_SLOT + 1) * sizeof *peers->asked);
    if (!usable(peers))
        return;
    tell_noted(peers);
    /* Operations on one entry take place in the order in which a process began them: once the last one told can be
       read, all before it are there. */
    for (int rank = 0; rank < peers->windows->size && !peers->broken; rank++) {
        cv_request request = CV_REQUEST_NULL;
        uint16_t  *entry   = peers->told[rank] && !shunned(peers, rank) ? malloc(sizeof *entry) : NULL;
        if (!entry || !ask(peers, rank, (intptr_t)peers->told[rank] - 1, 1, entry, &request)) {
            free(entry);
            continue;
        }
        bool answered = ends(peers, &request, cv_ticks() + cv_config.patience);
        judge(peers, rank, answered);
        if (answered) {
            peers->told[rank] = 0;
            free(entry);
        } else {
            cv_windows_late(peers->windows, request, entry, 0);
        }
    }
}

/* ---- Beginning and end. ---- */

struct cv_peers *cv_peers_open(int comm, struct cv_copy *copy)
{
    int              rank = 0, size = 0, nodes = 0;
    struct place     mine  = place_of(copy);
    struct cv_peers *peers = NULL;

    mpi.Comm_rank(comm, &rank);
    mpi.Comm_size(comm, &size);
    struct place *places  = calloc((size_t)size, sizeof *places);
    int          *node_of = calloc((size_t)size, sizeof *node_of);
    if (!places || !node_of) /* without a few bytes a process, MPI itself would not go on */
        abort();
    if (!mpi.Allgather(&mine, 2, CV_UINT64, places, 2, CV_UINT64, comm))
        nodes = number(places, size, node_of);
    if (nodes > 1 && nodes < UINT16_MAX) {
        peers                      = prepare(copy, size, nodes);
        struct cv_windows *windows = cv_windows_make(comm, peers, rank, size, copy);
        if (windows) {
            peers->windows = windows;
            peers->node    = (uint16_t)node_of[rank];
            for (uint64_t i = 0; i < CV_SLOT; i++)
                windows->own[i] = peers->node;
            list_ranks(peers, node_of, size, nodes);
            tell_all(peers);
            cv_fill_forget(copy); /* all nodes would fetch all of the file ahead */
            CV_COUNT(files_shared, 1);
        } else {
            release(peers);
            peers = NULL;
        }
    }
    free(places);
    free(node_of);
    return peers;
}

void cv_peers_close(struct cv_peers *peers)
{
    if (usable(peers))
        tell_noted(peers);
    if (peers->windows->gone)
        free(peers->windows);
    else
        peers->windows->done = true;
    release(peers);
}

void cv_peers_tidy(int comm)
{
    cv_windows_tidy(comm);
}
