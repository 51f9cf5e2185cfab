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

/* What a stream does in the gaps between its operations: nothing, so there are none; sleep; or compute. */
enum thinking { THINK_NOT, THINK_ASLEEP, THINK_BUSY };

/* Does the operations of stream `number`. False on failure. */
bool stream_run(const struct recipe *recipe, char *const *roots, uint32_t number, struct board *board, enum thinking think);

#endif
