/* Makes what was there before the program: folders, and files that it reads. */
#ifndef REPLAY_PREPARE_H
#define REPLAY_PREPARE_H

#include <stdbool.h>

#include "recipe.h"

/* Files are synced, and dropped from the page cache. False after a message. */
bool prepare(const struct recipe *recipe, char *const *roots);

#endif
