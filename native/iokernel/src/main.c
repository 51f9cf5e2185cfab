/*
 * iokernel: writes and reads files the way IOR does (default), or creates,
 * stats, reads and removes many of them the way mdtest does ("iokernel md"),
 * and reports every number it can vouch for as one JSON document.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "data.h"
#include "document.h"
#include "md.h"
#include "steps.h"
#include "usage.h"
#include "version.h"

/* Personalities that the first argument selects by name; without one it is the data personality. */
static const struct personality *const named[] = {&md_personality, &steps_personality};

static const struct personality *choose(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof named / sizeof *named; i++)
        if (strcmp(argv[1], named[i]->name) == 0)
            return named[i];
    return &data_personality;
}

/* The help of a personality: "iokernel --help", "iokernel md --help"; NULL for a name that none has. */
static const char *usage_of(int argc, char **argv)
{
    if (argc == 2)
        return usage_data;
    return strcmp(argv[1], "md") == 0 ? usage_md : strcmp(argv[1], "steps") == 0 ? usage_steps : NULL;
}

/* Answers that need no processes. */
static bool answered(int argc, char **argv)
{
    if (argc < 2)
        return false;
    const char *last = argv[argc - 1];
    if (argc == 2 && strcmp(last, "--version") == 0)
        printf("iokernel %s\n", IOKERNEL_VERSION);
    else if (argc == 2 && strcmp(last, "--capabilities") == 0)
        document_capabilities(NULL);
    else if (argc == 4 && strcmp(argv[1], "--hdf5.library") == 0 && strcmp(last, "--capabilities") == 0)
        document_capabilities(argv[2]);
    else if (argc <= 3 && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0) && usage_of(argc, argv))
        fputs(usage_of(argc, argv), stdout);
    else
        return false;
    return true;
}

/* The first files that are opened would take the numbers of closed standard streams, and a message or the
 * results would go into them. For reading only: what is written there must fail. */
static void occupy_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    if (answered(argc, argv))
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
    bool speaks = comm_start(&argc, &argv);
    struct job job = {.argc = argc, .argv = argv, .node_wanted = -1, .own_session = true, .began = clock_epoch()};
    job.personality = choose(argc, argv);
    int status = job.personality->parse(&job, speaks);
    if (status == EXIT_DONE && speaks)
        status = document_check(&job, true);
    status = comm_agree(status);
    if (status == EXIT_DONE)
        status = comm_run(&job, document_write);
    comm_finish();
    free(job.options);
    free(job.summary_copy);
    return status;
}
