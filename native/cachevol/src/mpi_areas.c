#include "mpi_areas.h"

#include <stdlib.h>

const struct box cv_box_nothing = {{1}, {0}};

bool cv_box_is_nothing(const struct box *box)
{
    return box->low[0] > box->high[0];
}

bool cv_boxes_meet(const struct box *a, const struct box *b)
{
    if (cv_box_is_nothing(a) || cv_box_is_nothing(b))
        return false;
    for (int d = 0; d < CV_DIMENSIONS; d++)
        if (a->low[d] > b->high[d] || b->low[d] > a->high[d])
            return false;
    return true;
}

void cv_box_widen(struct box *box, const struct box *by)
{
    if (cv_box_is_nothing(by))
        return;
    if (cv_box_is_nothing(box)) {
        *box = *by;
        return;
    }
    for (int d = 0; d < CV_DIMENSIONS; d++) {
        box->low[d]  = by->low[d] < box->low[d] ? by->low[d] : box->low[d];
        box->high[d] = by->high[d] > box->high[d] ? by->high[d] : box->high[d];
    }
}

struct cv_areas *cv_areas_make(void)
{
    struct cv_areas *areas = calloc(1, sizeof *areas);

    if (areas) {
        areas->own    = malloc(CV_AREAS_MOST * sizeof *areas->own);
        areas->others = malloc(CV_AREAS_MOST * sizeof *areas->others);
    }
    if (areas && areas->own && areas->others)
        return areas;
    cv_areas_free(areas);
    return NULL;
}

void cv_areas_free(struct cv_areas *areas)
{
    if (!areas)
        return;
    free(areas->own);
    free(areas->others);
    free(areas);
}

bool cv_areas_own(const struct cv_areas *areas, uint64_t dataset, const struct box *box)
{
    for (size_t i = 0; i < areas->owns; i++)
        if (areas->own[i].dataset == dataset && cv_boxes_meet(&areas->own[i].box, box))
            return true;
    return false;
}

/* Where a dataset is remembered; another one may take its place. */
static size_t place_of(uint64_t dataset)
{
    return (size_t)(dataset * UINT64_C(0x9e3779b97f4a7c15) >> 52) % CV_KNOWN_MOST;
}

void cv_areas_know(struct cv_areas *areas, uint64_t dataset)
{
    areas->known[place_of(dataset)] = dataset;
}

bool cv_areas_known(const struct cv_areas *areas, uint64_t dataset)
{
    return areas->known[place_of(dataset)] == dataset;
}
