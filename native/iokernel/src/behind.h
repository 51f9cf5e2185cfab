/*
 * What lies behind the client: single pages of the data are read twice in a
 * row, past this node's page cache (O_DIRECT). Any cache between here and the
 * medium has the second one; whether it had the first is the question.
 */
#ifndef IOKERNEL_BEHIND_H
#define IOKERNEL_BEHIND_H

#include "data.h"
#include "json.h"

/* Bytes of a touch, and of data for each: a touch may bring a block of the server's into its memory. */
enum { BEHIND_PAGE = 4096, BEHIND_STRIDE = 1 << 19, BEHIND_MOST = 256 };

struct behind {
    int count;                            /* touches, each twice */
    int64_t first[BEHIND_MOST], second[BEHIND_MOST]; /* nanoseconds */
    int error;                            /* errno that ended it, 0 for none */
};

/* Not collective: rank 0 touches the data of all tasks, about a second at most. No failure of the run. */
void behind_touch(const struct data_run *run, struct behind *b);

void behind_json(const struct behind *b, struct json *j);

#endif
