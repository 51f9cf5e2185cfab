/* The directory: which node holds which block. It is spread over the processes, a slot of entries with each in turn. */
#include "mpi_parts.h"
#include "config.h"
#include "fill.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT64_C(250000000) /* ns for which the answer that nobody has a block holds */
#define BATCH  UINT64_C(64)        /* slots whose entries are sent together when a file is opened */

static int home_of(const struct cv_windows *windows, uint64_t slot)
{
    return (int)(slot % (uint64_t)windows->size);
}

static intptr_t place_in(const struct cv_windows *windows, uint64_t slot)
{
    return (intptr_t)(slot / (uint64_t)windows->size * CV_SLOT);
}

/* Makes entries of one slot. They only ever grow: all that is done to the directory is MPI_MAX and reading. */
static bool tell(struct cv_peers *peers, uint64_t block, const uint64_t *entries, uint64_t count)
{
    struct cv_windows *windows = peers->windows;
    uint64_t           slot    = block / CV_SLOT;
    int                home    = home_of(windows, slot);
    intptr_t           at      = place_in(windows, slot) + (intptr_t)(block % CV_SLOT);

    if (mpi.Accumulate(entries, (int)count, CV_UINT64, home, at, (int)count, CV_UINT64, CV_MAX, windows->directory))
        peers->broken = true;
    peers->told[home] = (uint64_t)at + 1;
    return !peers->broken;
}

void cv_directory_tell_all(struct cv_peers *peers)
{
    struct cv_windows *windows = peers->windows;
    uint64_t          *entries = malloc(BATCH * CV_SLOT * sizeof *entries);
    uint64_t           share = 0, shares = (uint64_t)(peers->first[peers->node + 1] - peers->first[peers->node]);
    uint64_t           blocks = blocks_of(peers->copy->size), used = 0;

    while (peers->ranks[peers->first[peers->node] + (int)share] != windows->rank)
        share++;
    uint64_t words[CV_SLOT];
    for (uint64_t slot = share; entries && slot < windows->slots; slot += shares) {
        uint64_t *to    = entries + used * CV_SLOT;
        uint64_t  first = slot * CV_SLOT, count = least(CV_SLOT, blocks - first), there = 0;
        cv_copy_words(peers->copy, first, count, words);
        for (uint64_t i = 0; i < count; i++) {
            to[i] = words[i] ? entry_of(peers->node, words[i]) : 0;
            there += words[i] != 0;
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

void cv_directory_tell_noted(struct cv_peers *peers)
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
                uint64_t *own = peers->windows->known + block;
                cv_copy_words(peers->copy, block, count, own);
                for (uint64_t each = 0; each < count; each++)
                    own[each] = entry_of(peers->node, own[each]);
                tell(peers, block, own, count);
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

static bool ask(struct cv_peers *peers, int home, intptr_t at, uint64_t count, uint64_t *entries, cv_request *request)
{
    if (mpi.Rget_accumulate(NULL, 0, CV_UINT64, entries, (int)count, CV_UINT64, home, at, (int)count, CV_UINT64,
                            CV_NO_OP, peers->windows->directory, request))
        peers->broken = true;
    return !peers->broken;
}

void cv_directory_look_up(struct cv_peers *peers, uint64_t slot)
{
    uint64_t   first = slot * CV_SLOT, count = least(CV_SLOT, blocks_of(peers->copy->size) - first);
    int        home    = home_of(peers->windows, slot);
    bool       asks    = cv_ticks() >= peers->asked[slot] && !cv_peers_shunned(peers, home);
    uint64_t  *entries = asks ? malloc(CV_SLOT * sizeof *entries) : NULL;
    cv_request request = CV_REQUEST_NULL;

    if (!entries)
        return;
    if (!ask(peers, home, place_in(peers->windows, slot), count, entries, &request)) {
        free(entries);
        return;
    }
    bool answered = cv_peers_ends(peers, &request, cv_ticks() + cv_config.patience);
    cv_peers_judge(peers, home, answered);
    if (!answered) {
        cv_windows_late(peers->windows, request, entries, 0);
        return;
    }
    peers->asked[slot] = cv_ticks() + NOBODY;
    for (uint64_t i = 0; i < count; i++)
        if (!peers->windows->known[first + i])
            peers->windows->known[first + i] = entries[i];
    free(entries);
}

void cv_directory_settle(struct cv_peers *peers)
{
    /* Operations on one entry take place in the order in which a process began them: once the last one told can be
       read, all before it are there. */
    for (int rank = 0; rank < peers->windows->size && !peers->broken; rank++) {
        cv_request request = CV_REQUEST_NULL;
        uint64_t  *entry   = peers->told[rank] && !cv_peers_shunned(peers, rank) ? malloc(sizeof *entry) : NULL;
        if (!entry || !ask(peers, rank, (intptr_t)peers->told[rank] - 1, 1, entry, &request)) {
            free(entry);
            continue;
        }
        bool answered = cv_peers_ends(peers, &request, cv_ticks() + cv_config.patience);
        cv_peers_judge(peers, rank, answered);
        if (answered) {
            peers->told[rank] = 0;
            free(entry);
        } else {
            cv_windows_late(peers->windows, request, entry, 0);
        }
    }
}
