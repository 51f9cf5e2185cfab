/* Options that both personalities share. */
#ifndef IOKERNEL_OPTIONS_LAUNCH_H
#define IOKERNEL_OPTIONS_LAUNCH_H

#include <getopt.h>
#include <stdbool.h>

struct job;

/* Codes of long options that have no letter; each personality counts on from OPTION_OWN. */
enum { OPTION_SESSION = 1000, OPTION_SUMMARY_FILE, OPTION_PROCESSES, OPTION_OWN };

#define OPTIONS_LAUNCH                                                  \
    {"session", required_argument, NULL, OPTION_SESSION},               \
    {"summary-file", required_argument, NULL, OPTION_SUMMARY_FILE},     \
    {"processes", required_argument, NULL, OPTION_PROCESSES}

/* Applies one of the options above; EXIT_DONE or EXIT_USAGE. */
int launch_option(struct job *job, int code, const char *value, bool report);

/*
 * Splits -O's "key=value[,key=value]" and applies each pair through a function
 * that returns EXIT_DONE, EXIT_USAGE after a message, or -1 for a key it does
 * not know. summaryFile and summaryFormat are applied here.
 */
int directives(struct job *job, const char *text, bool report,
               int (*apply)(void *options, const char *key, const char *value, bool report));

/* What getopt_long stumbled over, as a usage error. */
int unknown_option(char **argv, int index, int code, bool report);

/* The value of an option without the leading '=' that IOR allows ("-t=4k"). */
const char *plain_value(const char *value);

/* Both finish the work of a parser. */
int leftover_arguments(const struct job *job, int index, bool report);

#endif
