#include "mpi_areas.h"

#include <stdlib.h>

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
