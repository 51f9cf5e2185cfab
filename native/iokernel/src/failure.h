/*
 * What went wrong. Each process keeps the first failure it meets and goes on
 * to the next point where all processes meet; there they agree, so nobody is
 * left waiting for somebody who gave up.
 */
#ifndef IOKERNEL_FAILURE_H
#define IOKERNEL_FAILURE_H

#include <stdbool.h>

struct comm;
struct json;

struct failure {
    bool set;
    int rank;
    int error;  /* errno, or 0 when no system call failed */
    int signal; /* the run was told to stop by this signal, or 0 */
    char host[256];
    char phase[32];
    char operation[32];
    char message[512];
    char path[4096];
};

/* Exit statuses of the program. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Records a failure unless one is there already. The format may be NULL: then errno's text says it. */
__attribute__((format(printf, 5, 6))) void failure_note(struct failure *f, const char *operation, const char *path,
                                                         int error, const char *format, ...);

/*
 * Collective: true when any process failed or was told to stop; then every
 * process holds the failure of the lowest such rank.
 */
bool failure_agree(struct failure *f, const struct comm *c, const char *phase);

/* The errno whose text occurs in what a library says, or 0. */
int error_in_words(const char *text);

/* The exit status of a run that ended this way. */
int failure_status(const struct failure *f);

/* One line on stderr. */
void failure_print(const struct failure *f);

/* An object, or null when nothing failed. */
void failure_json(const struct failure *f, struct json *j, const char *key);

/* The signal that told this process to stop, or 0; set by a handler (stop_on_signals). */
int stop_requested(void);
void stop_on_signals(void);

/*
 * A mistake of the user: prints "iokernel: <what>: <explanation>" as one line
 * when report is set, whatever bytes the texts hold, and returns EXIT_USAGE.
 */
__attribute__((format(printf, 3, 4))) int usage_error(bool report, const char *what, const char *format, ...);

#endif
