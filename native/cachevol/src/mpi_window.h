/* The two windows over which processes share a file; see mpi_peers.h. */
#ifndef CACHEVOL_MPI_WINDOW_H
#define CACHEVOL_MPI_WINDOW_H

#include "copy.h"
#include "mpi_api.h"

#define CV_SLOT UINT64_C(1024) /* blocks whose directory entries lie together, with one process */

/* A transfer that did not end in time: its memory is the MPI library's until it does. */
struct cv_late {
    cv_request      request;
    void           *memory;
    uint64_t        fill; /* bytes, where the memory is a fill's; else 0 */
    struct cv_late *next;
};

struct cv_windows {
    cv_comm            comm;
    cv_win             directory, data;
    int                rank, size;
    uint64_t          *entries; /* this process's part of the directory */
    uint64_t           slots;   /* of the file */
    uint64_t          *known;   /* entries for each block, seen or own: what goes into the directory is taken from here */
    void              *map;     /* the copy's data */
    struct cv_copy    *copy;
    struct cv_late    *late;
    unsigned           lates;
    bool               done;  /* this process no longer uses them */
    bool               gone;  /* freed: MPI ended */
    struct cv_windows *next;
};

/* Makes both; all processes of the communicator take part. `ready` tells that this one can. Takes the communicator,
   unless it returns NULL, which it does in all processes or in none. */
struct cv_windows *cv_windows_make(cv_comm comm, bool ready, int rank, int size, struct cv_copy *copy);

/* Frees those that all processes of `comm` are done with; all take part. */
void cv_windows_tidy(cv_comm comm);

/* Keeps a late transfer until it ended, and lets go of those that did. */
void cv_windows_late(struct cv_windows *windows, cv_request request, void *memory, uint64_t fill);
void cv_windows_collect(struct cv_windows *windows);

#endif
