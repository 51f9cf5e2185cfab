/* What a killed program left staged for a file that is about to be opened. */
#ifndef CACHEVOL_LEFT_H
#define CACHEVOL_LEFT_H

#include <stdbool.h>
#include <stddef.h>

/* Replays it; or drops it where the file is about to be emptied. Returns 0 where the file is as its programs
   left it (or another process still writes it), or -1 with a sentence that says what to do. */
int cv_left_settle(const char *name, bool emptying, char *why, size_t room);

#endif
