#include "mpi_parts.h"
#include "checksum.h"
#include "config.h"
#include "fill.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE 64 /* reads after which neighbours slower than the base storage are tried again */

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
    place.node = cv_sum(&node, sizeof node);
    place.file = copy->state | 1;
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
    peers->asked         = calloc((size_t)(blocks_of(copy->size) / CV_SLOT + 1), sizeof *peers->asked);
    peers->shunned_until = calloc((size_t)size, sizeof *peers->shunned_until);
    peers->shunned_for   = calloc((size_t)size, sizeof *peers->shunned_for);
    peers->told          = calloc((size_t)size, sizeof *peers->told);
    if (peers->ranks && peers->first && peers->asked && peers->shunned_until && peers->shunned_for &&
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

/* ---- Reading. ---- */

/* A process of the node that is expected to answer, or -1. The processes of one node ask different ones. */
static int rank_on(const struct cv_peers *peers, uint16_t node)
{
    int from = peers->first[node], count = peers->first[node + 1] - from;

    for (int i = 0; i < count; i++) {
        int rank = peers->ranks[from + (peers->windows->rank + i) % count];
        if (!cv_peers_shunned(peers, rank))
            return rank;
    }
    return -1;
}

/* Whether blocks that came from a neighbour are what it told of. One that is not is not asked for there again. */
static bool are_right(struct cv_peers *peers, uint64_t begin, uint64_t end, const char *bytes)
{
    uint64_t *known = peers->windows->known;
    bool      right = true;

    for (uint64_t at = begin; at < end; at += CV_BLOCK) {
        uint64_t block = at / CV_BLOCK, word = cv_copy_word(peers->copy, block, bytes + (at - begin), least(CV_BLOCK, end - at));
        if (known[block] == entry_of(entry_node(known[block]), word))
            continue;
        known[block] = entry_of(peers->node, 0);
        right        = false;
    }
    return right;
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
    bool answered = cv_peers_ends(peers, &request, from + cv_config.patience);
    cv_peers_judge(peers, rank, answered);
    if (!answered) {
        cv_rate_note(&peers->rate, end - begin, 2 * cv_config.patience); /* or longer */
        cv_windows_late(peers->windows, request, memory, fill ? end - begin : 0);
        return false;
    }
    cv_rate_note(&peers->rate, end - begin, cv_ticks() - from);
    if (!are_right(peers, begin, end, memory)) {
        CV_COUNT(neighbour_damaged, 1);
        if (fill)
            cv_fill_cancel(fill, end - begin);
        else
            free(memory);
        return false;
    }
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

    if (!cv_peers_usable(peers))
        return 0;
    cv_directory_tell_noted(peers);
    uint64_t rate = cv_rate(&peers->rate);
    if (cv_config.adaptive && rate && rate < base_rate && ++peers->skipped % PROBE)
        return 0;
    const uint64_t *known = peers->windows->known;
    for (uint64_t block = first; block <= last; block++)
        if (!known[block]) {
            cv_directory_look_up(peers, block / CV_SLOT);
            block = (block / CV_SLOT + 1) * CV_SLOT - 1;
        }
    uint16_t node = entry_node(known[first]);
    while (first + run <= last && entry_node(known[first + run]) == node)
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
    if (!cv_peers_usable(peers))
        return;
    cv_directory_tell_noted(peers);
    cv_directory_settle(peers);
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
            list_ranks(peers, node_of, size, nodes);
            cv_directory_tell_all(peers);
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
    if (cv_peers_usable(peers))
        cv_directory_tell_noted(peers);
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
