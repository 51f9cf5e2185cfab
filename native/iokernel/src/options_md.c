#include "options_md.h"

#include <getopt.h>
#include <stdlib.h>
#include <strings.h>

#include "job.h"
#include "options_launch.h"
#include "size.h"

enum { OPTION_RENAME = OPTION_OWN, OPTION_RANDOM_SEED, OPTION_SERIES, OPTION_AGAIN };

static const struct option long_options[] = {
    OPTIONS_LAUNCH,
    {"rename", no_argument, NULL, OPTION_RENAME},
    {"random-seed", required_argument, NULL, OPTION_RANDOM_SEED},
    {"verify-read", no_argument, NULL, 'X'},
    {"again", required_argument, NULL, OPTION_AGAIN},
    {"timeseries-interval", required_argument, NULL, OPTION_SERIES},
    {0},
};

/* mdtest's -O keys are all common ones */
static int directive(void *options, const char *key, const char *value, bool report)
{
    (void)options;
    (void)key;
    (void)value;
    (void)report;
    return -1;
}

static int apply(struct job *job, struct md_options *o, int code, const char *value, bool report)
{
    const char *plain = value ? plain_value(value) : "";
#define WHOLE(name, least, most, target)                                                                     \
    if (!integer_parse(plain, (least), (most), (target)))                                                    \
        return usage_error(report, (name), "'%s' is not a whole number from %lld to %lld", value,            \
                           (long long)(least), (long long)(most));                                           \
    return EXIT_DONE
#define SIZE(name, target)                                                                                   \
    if (!size_parse(plain, (target)) || *(target) > INT64_C(1) << 40)                                        \
        return usage_error(report, (name), "'%s' is not a number up to 1t; k, m and g are powers of 1024",   \
                           value);                                                                           \
    return EXIT_DONE
    switch (code) {
    case 'a':
        if (strcasecmp(plain, "POSIX") != 0)
            return usage_error(report, "-a", "'%s' is not built in; metadata takes only POSIX", value);
        return EXIT_DONE;
    case 'd':
        if (!value[0])
            return usage_error(report, "-d", "empty name; give a directory");
        o->directory = value;
        return EXIT_DONE;
    case 'n': SIZE("-n", &o->items_wanted);
    case 'I': SIZE("-I", &o->per_directory_wanted);
    case 'w': SIZE("-w", &o->write_bytes);
    case 'e': SIZE("-e", &o->read_bytes);
    case 'b': WHOLE("-b", 0, INT32_MAX, &o->branches);
    case 'z': WHOLE("-z", 0, 1000, &o->depth);
    case 'i': WHOLE("-i", 1, 100000, &o->iterations);
    case 'N': WHOLE("-N", 0, INT32_MAX, &o->stride);
    case 'p': WHOLE("-p", 0, 1000000, &o->delay);
    case 'G': WHOLE("-G", 0, UINT32_MAX, &o->data_seed);
    case OPTION_RANDOM_SEED: WHOLE("--random-seed", 1, INT32_MAX, &o->random_seed);
    case 'W':
        if (!number_parse(plain, &o->stonewall) || o->stonewall > 1e9)
            return usage_error(report, "-W", "'%s' is not a number of seconds", value);
        return EXIT_DONE;
    case OPTION_AGAIN:
        if (!number_parse(plain, &o->again) || o->again > 1e6)
            return usage_error(report, "--again", "'%s' is not a number of seconds up to 1000000", value);
        return EXIT_DONE;
    case OPTION_SERIES:
        if (!number_parse(plain, &o->series_interval) || o->series_interval < 0.0001 || o->series_interval > 1e6)
            return usage_error(report, "--timeseries-interval", "'%s' is not a number of seconds from 0.0001", value);
        return EXIT_DONE;
    case 'O': return directives(job, value, report, directive);
    case 'Z': return usage_error(report, "-Z", "is not offered; times and rates are both in the results");
    case 't': return usage_error(report, "-t", "is not offered; making the tree is a phase of its own");
    case 'S': return usage_error(report, "-S", "is not offered; a shared file is a case for the data personality");
    case 'c': return usage_error(report, "-c", "is not offered; every task creates its own items");
    case 'L': o->leaf_only = true; return EXIT_DONE;
    case 'u': o->unique = true; return EXIT_DONE;
    case 'y': o->sync = true; return EXIT_DONE;
    case 'X': o->verify = true; return EXIT_DONE;
    case 'C': o->create = true; return EXIT_DONE;
    case 'T': o->stat = true; return EXIT_DONE;
    case 'E': o->read = true; return EXIT_DONE;
    case 'r': o->remove = true; return EXIT_DONE;
    case 'U': o->rename_directories = true; return EXIT_DONE;
    case OPTION_RENAME: o->rename_files = true; return EXIT_DONE;
    case 'D': o->directories = true; return EXIT_DONE;
    case 'F': o->files = true; return EXIT_DONE;
    case 'R': o->random = true; return EXIT_DONE;
    case 'v': job->verbose++; return EXIT_DONE;
    default: return launch_option(job, code, value, report);
    }
#undef WHOLE
#undef SIZE
}

/* The numbers of directories and items, by mdtest's rules; what does not divide is rounded down, as there. */
static int plan(struct md_options *o, bool report)
{
    if (o->depth > 0 && o->branches < 1)
        return usage_error(report, "-b", "a tree of depth %lld needs at least one branch", (long long)o->depth);
    o->directories_in_tree = o->leaves = 1;
    for (int64_t level = 0; level < o->depth; level++) {
        o->leaves *= o->branches;
        o->directories_in_tree += o->leaves;
        if (o->directories_in_tree > 100000000)
            return usage_error(report, "-z", "the tree would have more than 100000000 directories");
    }
    int64_t holders = o->leaf_only ? o->leaves : o->directories_in_tree;
    o->trees = 1;
    if (!o->items_wanted && !o->per_directory_wanted)
        return usage_error(report, "-n", "say how many items, by -n per task or by -I per directory");
    if (o->per_directory_wanted && o->items_wanted) {
        if (o->unique)
            return usage_error(report, "-I", "cannot be combined with -n and -u");
        if (o->items_wanted % o->per_directory_wanted)
            return usage_error(report, "-n", "%lld is not a multiple of the %lld items per directory (-I)",
                               (long long)o->items_wanted, (long long)o->per_directory_wanted);
        o->trees = o->items_wanted / o->per_directory_wanted;
        if (o->trees > 1000000)
            return usage_error(report, "-I", "-n and -I together would make more than 1000000 trees");
    }
    o->per_directory = o->per_directory_wanted ? o->per_directory_wanted : o->items_wanted / holders;
    if (!o->per_directory)
        return usage_error(report, "-n", "%lld items cannot be spread over %lld directories",
                           (long long)o->items_wanted, (long long)holders);
    if (__builtin_mul_overflow(o->per_directory, holders, &o->per_tree) || o->per_tree > INT64_C(1) << 40)
        return usage_error(report, "-I", "too many items");
    if (o->trees > 1 && o->stonewall > 0)
        return usage_error(report, "-W", "cannot be combined with -n and -I together");
    return EXIT_DONE;
}

int md_parse(struct job *job, bool report)
{
    struct md_options *o = calloc(1, sizeof *o);
    if (!o)
        return usage_error(report, "memory", "none left");
    *o = (struct md_options){.directory = "./out", .branches = 1, .iterations = 1, .random_seed = -1,
                             .data_seed = -1, .series_interval = 0.1};
    job->options = o;
    int code, status = EXIT_DONE;
    opterr = 0;
    optind = 2; /* after "md" */
    while (status == EXIT_DONE &&
           (code = getopt_long(job->argc, job->argv, "+:a:b:cCd:De:EFG:i:I:Ln:N:O:p:rRStTuUvw:W:XyZz:", long_options,
                               NULL)) != -1) {
        if (code == '?' || code == ':')
            return unknown_option(job->argv, optind, code, report);
        status = apply(job, o, code, optarg, report);
    }
    if (status == EXIT_DONE)
        status = leftover_arguments(job, optind, report);
    if (status == EXIT_DONE)
        status = plan(o, report);
    if (status != EXIT_DONE)
        return status;
    if (!o->create && !o->stat && !o->read && !o->remove && !o->rename_directories && !o->rename_files)
        o->create = o->stat = o->read = o->remove = o->rename_directories = true;
    else if (o->rename_files && !o->create && !o->stat && !o->read && !o->remove && !o->rename_directories)
        o->create = o->stat = o->read = o->remove = o->rename_directories = true;
    if (!o->directories && !o->files)
        o->directories = o->files = true;
    if (o->random_seed > 0)
        o->random = true;
    if (o->verify && (!o->read || !o->files || o->read_bytes == 0))
        return usage_error(report, "-X", "checks what the read phase reads: needs files and -e");
    if (o->verify && !o->create && o->data_seed < 0)
        return usage_error(report, "-X", "needs the data seed (-G) that the files were written with");
    if (o->create && o->read && o->files && o->read_bytes > o->write_bytes)
        return usage_error(report, "-e", "%lld bytes cannot be read from files of %lld bytes (-w)",
                           (long long)o->read_bytes, (long long)o->write_bytes);
    if (job->processes == 0)
        job->processes = 1;
    return EXIT_DONE;
}
