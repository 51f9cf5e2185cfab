#include "options_launch.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "comm.h"
#include "job.h"
#include "size.h"

#define PROCESSES_MOST 4096

int launch_option(struct job *job, int code, const char *value, bool report)
{
    int64_t number;
    switch (code) {
    case OPTION_SUMMARY_FILE:
        if (!value[0])
            return usage_error(report, "--summary-file", "empty name; give a file name");
        job->summary_file = value;
        return EXIT_DONE;
    case OPTION_PROCESSES:
        if (comm_is_mpi())
            return usage_error(report, "--processes", "this build takes its processes from the MPI launcher");
        if (!integer_parse(plain_value(value), 1, PROCESSES_MOST, &number))
            return usage_error(report, "--processes", "'%s' is not a number of processes from 1 to %d", value,
                               PROCESSES_MOST);
        job->processes = (int)number;
        return EXIT_DONE;
    default: /* OPTION_SESSION */
        if (strcmp(value, "own") != 0 && strcmp(value, "shared") != 0)
            return usage_error(report, "--session", "'%s' is neither own nor shared", value);
        if (comm_is_mpi())
            return usage_error(report, "--session", "this build takes its sessions from the MPI launcher");
        job->own_session = strcmp(value, "own") == 0;
        return EXIT_DONE;
    }
}

static int apply_common(struct job *job, const char *key, const char *value, bool report)
{
    if (strcasecmp(key, "summaryFile") == 0) {
        job->summary_copy = strdup(value); /* the value itself does not outlive the parsing */
        return launch_option(job, OPTION_SUMMARY_FILE, job->summary_copy ? job->summary_copy : "", report);
    }
    if (strcasecmp(key, "summaryFormat") == 0) {
        if (strcasecmp(value, "JSON") != 0)
            return usage_error(report, "-O summaryFormat", "'%s' is not written; only JSON is", value);
        return EXIT_DONE;
    }
    return -1;
}

int directives(struct job *job, const char *text, bool report,
               int (*apply)(void *options, const char *key, const char *value, bool report))
{
    char *copy = strdup(text), *rest = copy;
    int status = copy ? EXIT_DONE : usage_error(report, "-O", "out of memory");
    while (status == EXIT_DONE && rest) {
        char *pair = strsep(&rest, ",");
        char *value = strchr(pair, '=');
        if (!value) {
            status = usage_error(report, "-O", "'%s' is not of the form key=value", pair);
            break;
        }
        *value++ = '\0';
        status = apply_common(job, pair, value, report);
        if (status == -1)
            status = apply(job->options, pair, value, report);
        if (status == -1)
            status = usage_error(report, "-O", "'%s' is not a known key; see --help", pair);
    }
    free(copy);
    return status;
}

int unknown_option(char **argv, int index, int code, bool report)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    const char *name = optopt > 0 && optopt < 256 ? letter : argv[index - 1];
    if (code == ':')
        return usage_error(report, name, "needs a value; see --help");
    return usage_error(report, name, "unknown option, or a value where none belongs; see --help");
}

const char *plain_value(const char *value)
{
    return value[0] == '=' ? value + 1 : value;
}

int leftover_arguments(const struct job *job, int index, bool report)
{
    if (index < job->argc)
        return usage_error(report, job->argv[index], "unexpected argument; options begin with '-', see --help");
    return EXIT_DONE;
}
