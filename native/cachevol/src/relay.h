/* Copying what a read brings from one buffer to another while the next piece of it is still being read: a thread
   of the process copies, so that the reader does not wait for more than the last piece. */
#ifndef CACHEVOL_RELAY_H
#define CACHEVOL_RELAY_H

#include <stdbool.h>
#include <stddef.h>

/* Begins to copy; false where another thread's read is being copied. Then: */
bool cv_relay_begin(const char *from, char *to);
/* `have` bytes are there by now. */
void cv_relay_have(size_t have);
/* Nothing more comes than these; returns once they are copied, the last ones by the caller. With 0 what has not been
   copied yet is not. */
void cv_relay_end(size_t have);

#endif
