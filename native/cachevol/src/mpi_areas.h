/* Where in a parallel file the data lie that are staged and not settled. */
#ifndef CACHEVOL_MPI_AREAS_H
#define CACHEVOL_MPI_AREAS_H

#include <stddef.h>
#include <stdint.h>

#define CV_DIMENSIONS 4    /* of selections that are compared: boxes that meet in fewer may meet in all */
#define CV_AREAS_MOST 4096 /* after which the processes settle */

struct box {
    uint64_t low[CV_DIMENSIONS], high[CV_DIMENSIONS]; /* elements, both included; low > high: nothing */
};

struct area {
    uint64_t   dataset; /* where its header lies */
    struct box box;
    uint64_t   call;
};

struct cv_areas {
    struct area *own, *others; /* of other processes, a box around what they wrote in one call */
    size_t       owns, other;
    uint64_t     votes;
};

/* NULL where there is no memory. */
struct cv_areas *cv_areas_make(void);
void             cv_areas_free(struct cv_areas *areas); /* may be NULL */

#endif
