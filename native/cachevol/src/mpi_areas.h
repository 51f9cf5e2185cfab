/* Where in a parallel file the data lie that are staged and not settled. */
#ifndef CACHEVOL_MPI_AREAS_H
#define CACHEVOL_MPI_AREAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CV_DIMENSIONS 4    /* of selections that are compared: boxes that meet in fewer may meet in all */
#define CV_AREAS_MOST 4096 /* after which the processes settle */
#define CV_KNOWN_MOST 4096 /* datasets that are remembered */

struct box {
    uint64_t low[CV_DIMENSIONS], high[CV_DIMENSIONS]; /* elements, both included; low > high: nothing */
};

extern const struct box cv_box_nothing;

bool cv_box_is_nothing(const struct box *box);
bool cv_boxes_meet(const struct box *a, const struct box *b);
/* Makes it one around both. */
void cv_box_widen(struct box *box, const struct box *by);

struct area {
    uint64_t   dataset; /* where its header lies */
    struct box box;
    uint64_t   call;
};

struct cv_areas {
    struct area *own, *others; /* of other processes, a box around what they wrote in one call */
    size_t       owns, other;
    uint64_t     known[CV_KNOWN_MOST]; /* datasets that were open before, each in one place; 0: none */
    uint64_t     votes, tries; /* writes that could have gone direct: of all together, and of this process alone */
};

/* NULL where there is no memory. */
struct cv_areas *cv_areas_make(void);
void             cv_areas_free(struct cv_areas *areas); /* may be NULL */

/* Remembers a dataset; whether it is remembered. */
void cv_areas_know(struct cv_areas *areas, uint64_t dataset);
bool cv_areas_known(const struct cv_areas *areas, uint64_t dataset);

/* Whether any of this process's own meets the box. */
bool cv_areas_own(const struct cv_areas *areas, uint64_t dataset, const struct box *box);

#endif
