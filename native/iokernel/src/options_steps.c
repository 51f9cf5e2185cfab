#include "options_steps.h"

#include <getopt.h>
#include <stdlib.h>

#include "hdf5_library.h"
#include "job.h"
#include "options_launch.h"
#include "size.h"

enum {
    OPTION_CHECKPOINT = OPTION_OWN, OPTION_SAMPLES, OPTION_STREAM, OPTION_LIBRARY, OPTION_COMPUTE, OPTION_STEPS,
    OPTION_DATASETS, OPTION_COUNT, OPTION_SAMPLE_SIZE, OPTION_BATCH, OPTION_EPOCHS, OPTION_SEED, OPTION_EVICT
};

static const struct option long_options[] = {
    OPTIONS_LAUNCH,
    {"checkpoint", no_argument, NULL, OPTION_CHECKPOINT},
    {"samples", no_argument, NULL, OPTION_SAMPLES},
    {"stream", no_argument, NULL, OPTION_STREAM},
    {"hdf5.library", required_argument, NULL, OPTION_LIBRARY},
    {"compute", required_argument, NULL, OPTION_COMPUTE},
    {"steps", required_argument, NULL, OPTION_STEPS},
    {"datasets", required_argument, NULL, OPTION_DATASETS},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"sample-size", required_argument, NULL, OPTION_SAMPLE_SIZE},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"epochs", required_argument, NULL, OPTION_EPOCHS},
    {"random-offset-seed", required_argument, NULL, OPTION_SEED},
    {"evict", no_argument, NULL, OPTION_EVICT},
    {0},
};

enum { MOST = 1000000 };

/* -O has the common keys alone. */
static int directive(void *options, const char *key, const char *value, bool report)
{
    (void)options;
    (void)key;
    (void)value;
    (void)report;
    return -1;
}

static int choose(struct steps_options *o, enum steps_kind kind, bool report)
{
    if (o->kind != STEPS_NONE && o->kind != kind)
        return usage_error(report, "steps", "one of --checkpoint, --samples and --stream, not two");
    o->kind = kind;
    return EXIT_DONE;
}

static int apply(struct job *job, struct steps_options *o, int code, const char *value, bool report)
{
    const char *plain = value ? plain_value(value) : "";
#define WHOLE(name, most, target)                                                                            \
    if (!integer_parse(plain, 1, (most), (target)))                                                          \
        return usage_error(report, (name), "'%s' is not a whole number from 1 to %lld", value, (long long)(most)); \
    return EXIT_DONE
#define SIZE(name, target)                                                                                   \
    if (!size_parse(plain, (target)) || *(target) < 1 || *(target) > INT64_C(1) << 40)                       \
        return usage_error(report, (name), "'%s' is not a size from 1 to 1t; k, m and g are powers of 1024", value); \
    return EXIT_DONE
    switch (code) {
    case OPTION_CHECKPOINT: return choose(o, STEPS_CHECKPOINT, report);
    case OPTION_SAMPLES: return choose(o, STEPS_SAMPLES, report);
    case OPTION_STREAM: return choose(o, STEPS_STREAM, report);
    case 'o':
        if (!value[0])
            return usage_error(report, "-o", "empty name; give a file");
        o->path = value;
        return EXIT_DONE;
    case OPTION_LIBRARY: o->hdf5_library = value; return EXIT_DONE;
    case OPTION_COMPUTE:
        if (!number_parse(plain, &o->compute) || o->compute > 1e6)
            return usage_error(report, "--compute", "'%s' is not a number of seconds up to 1000000", value);
        return EXIT_DONE;
    case OPTION_STEPS: WHOLE("--steps", MOST, &o->steps);
    case OPTION_DATASETS: WHOLE("--datasets", MOST, &o->datasets);
    case 't': SIZE("-t", &o->dataset);
    case OPTION_COUNT: WHOLE("--count", INT64_C(1) << 40, &o->count);
    case OPTION_SAMPLE_SIZE: SIZE("--sample-size", &o->sample);
    case OPTION_BATCH: WHOLE("--batch", MOST, &o->batch);
    case OPTION_EPOCHS: WHOLE("--epochs", MOST, &o->epochs);
    case OPTION_SEED: WHOLE("--random-offset-seed", UINT32_MAX, &o->seed);
    case OPTION_EVICT: o->evict = true; return EXIT_DONE;
    case 'O': return directives(job, value, report, directive);
    case 'c': o->collective = true; return EXIT_DONE;
    case 'k': o->keep = true; return EXIT_DONE;
    case 'z': o->random = true; return EXIT_DONE;
    case 'v': job->verbose++; return EXIT_DONE;
    default: return launch_option(job, code, value, report);
    }
#undef WHOLE
#undef SIZE
}

int64_t steps_batches(const struct steps_options *o)
{
    return (o->count + o->batch - 1) / o->batch;
}

/* What goes together, and whether there is a library that can do it. */
static int check(struct job *job, const struct steps_options *o, bool report)
{
    char problem[512];
    if (o->kind == STEPS_NONE)
        return usage_error(report, "steps", "say what to do: --checkpoint, --samples or --stream");
    if (!o->path)
        return usage_error(report, "-o", "is missing; give a file");
    if (o->dataset % 4)
        return usage_error(report, "-t", "%lld is no multiple of 4, the size of an element", (long long)o->dataset);
    if (o->collective && o->kind == STEPS_STREAM)
        return usage_error(report, "-c", "is of writes: tasks read different numbers of batches");
    if (!comm_is_mpi() && job->processes > 1)
        return usage_error(report, "--processes", "several tasks share the file, which needs iokernel-mpi");
    const struct hdf5 *h5 = hdf5_load(o->hdf5_library, problem, sizeof problem);
    if (!h5)
        return usage_error(report, "steps", "%s; name one with --hdf5.library", problem);
    if (comm_is_mpi() && !h5->parallel)
        return usage_error(report, "steps", "iokernel-mpi needs an HDF5 library that is built with its own MPI, and %s "
                           "is not; name one with --hdf5.library", h5->version);
    return EXIT_DONE;
}

int steps_parse(struct job *job, bool report)
{
    struct steps_options *o = calloc(1, sizeof *o);
    if (!o)
        return usage_error(report, "memory", "none left");
    *o = (struct steps_options){.steps = 1, .datasets = 1, .dataset = 1 << 20, .count = 1024, .sample = 128 << 10,
                                .batch = 16, .epochs = 2, .seed = 1};
    job->options = o;
    int code, status = EXIT_DONE;
    opterr = 0;
    optind = 2; /* after "steps" */
    while (status == EXIT_DONE && (code = getopt_long(job->argc, job->argv, "+:ckn:o:O:t:vz", long_options, NULL)) != -1) {
        if (code == '?' || code == ':')
            return unknown_option(job->argv, optind, code, report);
        status = apply(job, o, code == 'n' ? OPTION_PROCESSES : code, optarg, report);
    }
    if (status == EXIT_DONE)
        status = leftover_arguments(job, optind, report);
    if (status == EXIT_DONE && job->processes == 0)
        job->processes = 1;
    return status == EXIT_DONE ? check(job, o, report) : status;
}
