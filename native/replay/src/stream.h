/* One stream of a recipe, carried out in a process of its own. */
#ifndef REPLAY_STREAM_H
#define REPLAY_STREAM_H

#include <stdbool.h>

#include "board.h"
#include "recipe.h"

/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t now_ns(void);

/* Path of a file below its root, in memory of its own. */
char *full_path(const struct recipe *recipe, char *const *roots, uint32_t file);

/* Does the operations of stream `number`; `think`: sleeps in the gaps between them. False on failure. */
bool stream_run(const struct recipe *recipe, char *const *roots, uint32_t number, struct board *board, bool think);

#endif
