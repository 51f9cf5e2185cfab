#include "mpi_window.h"
#include "fill.h"
#include "guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct cv_windows *all; /* in the order in which they were made, which is the same in all their processes */

static void let_go(struct cv_late *late)
{
    if (late->fill)
        cv_fill_cancel(late->memory, late->fill);
    else
        free(late->memory);
    free(late);
}

void cv_windows_late(struct cv_windows *windows, cv_request request, void *memory, uint64_t fill)
{
    struct cv_late *late = malloc(sizeof *late);

    if (!late)
        return; /* the memory is lost, but not used for anything else */
    *late         = (struct cv_late){request, memory, fill, windows->late};
    windows->late = late;
    windows->lates++;
}

void cv_windows_collect(struct cv_windows *windows)
{
    for (struct cv_late **at = &windows->late; *at;) {
        struct cv_late *late  = *at;
        int             ended = 0;
        if (mpi.Test(&late->request, &ended, CV_STATUS_IGNORE) || !ended) {
            at = &late->next;
            continue;
        }
        *at = late->next;
        windows->lates--;
        let_go(late);
    }
}

/* Takes a set out of the list and gives back what it took; all its processes do. */
static void take_down(struct cv_windows *windows)
{
    struct cv_windows **at = &all;

    while (*at != windows)
        at = &(*at)->next;
    *at = windows->next;
    mpi.Win_unlock_all(windows->data); /* which ends all transfers, also the late ones */
    mpi.Win_unlock_all(windows->directory);
    while (windows->late) {
        struct cv_late *late = windows->late;
        windows->late        = late->next;
        mpi.Wait(&late->request, CV_STATUS_IGNORE);
        let_go(late);
    }
    mpi.Win_free(&windows->data);
    mpi.Win_free(&windows->directory);
    cv_guard_no_more(windows->map);
    munmap(windows->map, windows->copy->size);
    cv_copy_release(windows->copy);
    mpi.Comm_free(&windows->comm);
    free(windows->known);
    windows->gone = true;
    if (windows->done)
        free(windows);
}

/* MPI_Finalize calls this first of all: the files may be open still, and then go on without neighbours. */
static int finalizing(cv_comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    while (all)
        take_down(all);
    return 0;
}

static bool watch_the_end(void)
{
    static bool watching;
    int         key = CV_KEYVAL_INVALID;

    if (!watching)
        watching = !mpi.Comm_create_keyval(NULL, finalizing, &key, NULL) && !mpi.Comm_set_attr(CV_COMM_SELF, key, NULL);
    return watching;
}

struct cv_windows *cv_windows_make(cv_comm comm, bool ready, int rank, int size, struct cv_copy *copy)
{
    struct cv_windows *windows = calloc(1, sizeof *windows);
    void              *map     = mmap(NULL, copy->size, PROT_READ, MAP_SHARED, copy->data, 0);
    bool               whole   = false;

    mpi.Comm_set_errhandler(comm, CV_ERRORS_RETURN);
    if (windows)
        windows->known = calloc((size_t)(copy->size / CV_BLOCK + 1), sizeof *windows->known);
    if (!cv_mpi_all(comm, ready && windows && windows->known && map != MAP_FAILED && watch_the_end()))
        goto failed;
    windows->comm = comm, windows->rank = rank, windows->size = size, windows->map = map, windows->copy = copy;
    windows->directory = windows->data = CV_WIN_NULL;
    windows->slots = (copy->size + CV_SLOT * CV_BLOCK - 1) / (CV_SLOT * CV_BLOCK);
    uint64_t mine  = (windows->slots + (uint64_t)size - 1) / (uint64_t)size;
    size_t   bytes = (size_t)(mine * CV_SLOT * sizeof *windows->entries);
    if (!mpi.Win_allocate((intptr_t)bytes, sizeof *windows->entries, CV_INFO_NULL, comm, &windows->entries,
                          &windows->directory)) {
        whole = !mpi.Win_create(map, (intptr_t)copy->size, 1, CV_INFO_NULL, comm, &windows->data);
        if (!cv_mpi_all(comm, whole)) {
            if (whole)
                mpi.Win_free(&windows->data);
            whole = false;
        }
    }
    if (!whole) {
        if (windows->directory != CV_WIN_NULL)
            mpi.Win_free(&windows->directory);
        goto failed;
    }
    mpi.Win_set_errhandler(windows->directory, CV_ERRORS_RETURN);
    mpi.Win_set_errhandler(windows->data, CV_ERRORS_RETURN);
    mpi.Win_lock_all(CV_NOCHECK, windows->directory);
    mpi.Win_lock_all(CV_NOCHECK, windows->data);
    memset(windows->entries, 0, bytes);
    mpi.Win_sync(windows->directory);
    mpi.Barrier(comm);
    cv_guard(map, copy->size); /* somebody may cut the file short: the neighbour finds that zeros are not what the directory says */
    cv_copy_hold(copy);
    struct cv_windows **last = &all;
    while (*last)
        last = &(*last)->next;
    *last = windows;
    return windows;
failed:
    if (map != MAP_FAILED)
        munmap(map, copy->size);
    if (windows)
        free(windows->known);
    free(windows);
    return NULL;
}

void cv_windows_tidy(cv_comm comm)
{
    uint64_t mine = 0, everywhere = 0;
    int      likeness, count = 0;

    /* The processes have equal lists of those that are of the same processes. */
    struct cv_windows *alike[64];
    for (struct cv_windows *at = all; at && count < 64; at = at->next)
        if (!mpi.Comm_compare(at->comm, comm, &likeness) && likeness <= CV_CONGRUENT) {
            mine |= (uint64_t)at->done << count;
            alike[count++] = at;
        }
    if (!count || mpi.Allreduce(&mine, &everywhere, 1, CV_UINT64, CV_BAND, comm))
        return;
    for (int i = 0; i < count; i++)
        if (everywhere >> i & 1)
            take_down(alike[i]);
}
