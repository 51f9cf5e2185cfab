/* Reading a log again: what it holds, and bringing it into the base file after its program died. */
#ifndef CACHEVOL_LOGSCAN_H
#define CACHEVOL_LOGSCAN_H

#include "log.h"

#include <stddef.h>

struct cv_found {
    struct cv_control control;  /* a copy */
    bool              alive;    /* its program still runs */
    bool              damaged;  /* records are missing or do not match their checksums */
    bool              torn;     /* the last record was never acknowledged and is not whole */
    uint64_t          records;  /* whole records that the base file lacks and a replay brings to it */
    uint64_t          bytes;    /* their data */
    uint64_t          left_out; /* records behind the last point at which the file was whole: a replay leaves them out */
};

enum cv_replayed {
    CV_REPLAY_DONE,    /* the base file holds everything now, the log is gone */
    CV_REPLAY_ALIVE,   /* its program still runs */
    CV_REPLAY_REFUSED, /* see the sentence; the log stays */
};

/* Looks at the log in `folder`. Returns 0, or -1 with a sentence in `why` where it is no log, or not one of this
   user's: what others wrote is never brought to a file with this user's rights. */
int cv_log_look(const char *folder, struct cv_found *found, char *why, size_t room);

/* Writes what the base file lacks into it, in order, makes it durable and removes the log and its marker.
   `force` goes on although the base file changed since, and up to the damage where there is some. `file`: by its
   marker the log was found, and only one of this file counts; NULL: of any. */
enum cv_replayed cv_log_replay(const char *folder, const char *file, bool force, struct cv_found *found, char *why,
                               size_t room);

/* Removes a folder that is no log yet, since the program that made it was killed at that moment. False where that
   program may be alive. */
bool cv_log_sweep(const char *folder);

/* Removes the log and its marker without writing. `file` as above. */
enum cv_replayed cv_log_drop(const char *folder, const char *file, struct cv_found *found, char *why, size_t room);

#endif
