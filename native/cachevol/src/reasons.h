/* Why something of a file was not staged or not cached: told once for each reason on stderr, and for each file in the
   line of counts. */
#ifndef CACHEVOL_REASONS_H
#define CACHEVOL_REASONS_H

#include <stdbool.h>
#include <stdio.h>

/* Something of the file at `path` is "not staged" or "not cached" (`what`), because `why`. Both texts are constants. With
   `aloud` it is said on stderr too, once in the process for each `why`: for what will not pass by itself. */
void cv_because(const char *path, const char *what, const char *why, bool aloud);

/* What several say. */
extern const char cv_not_staged[], cv_not_cached[], cv_base_fast[], cv_local_full[];

/* Writes them as a JSON list: file, what, why, times. */
void cv_reasons_write(FILE *out);

#endif
