/* Files that are mapped while somebody may cut them short, or their disk may fail: zeros stand in for what is gone, where a
   bus error would end the program. */
#ifndef CACHEVOL_GUARD_H
#define CACHEVOL_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What it returns becomes true once zeros stand in for something. */
const atomic_bool *cv_guard(void *map, size_t size);

/* Before the map goes. */
void cv_guard_no_more(const void *map);

#endif
