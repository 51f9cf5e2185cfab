#include "options_data.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "comm.h"
#include "job.h"
#include "options_launch.h"
#include "size.h"

enum {
    OPTION_ORDER_SEED = OPTION_OWN,
    OPTION_WEAR_OUT,
    OPTION_PREALLOCATE,
    OPTION_FILE_VIEW,
    OPTION_DIRECT,
    OPTION_HDF5,
    OPTION_ON_NODE,
    OPTION_PHASES,
    OPTION_DEPTH,
    OPTION_EVICT,
    OPTION_BEHIND,
    OPTION_PREPARE,
    OPTION_SERIES,
    OPTION_PER_RANK,
    OPTION_FILL,
    OPTION_TASK_OFFSET,
    OPTION_COMPRESSIBLE,
    OPTION_REPEATED,
};

static const struct option long_options[] = {
    OPTIONS_LAUNCH,
    {"collective", no_argument, NULL, 'c'},
    {"random-offset-seed", required_argument, NULL, OPTION_ORDER_SEED},
    {"stonewall-wear-out", no_argument, NULL, OPTION_WEAR_OUT},
    {"mpiio.preallocate", no_argument, NULL, OPTION_PREALLOCATE},
    {"mpiio.useFileView", no_argument, NULL, OPTION_FILE_VIEW},
    {"posix.odirect", no_argument, NULL, OPTION_DIRECT},
    {"hdf5.library", required_argument, NULL, OPTION_HDF5},
    {"on-node", required_argument, NULL, OPTION_ON_NODE},
    {"phases", required_argument, NULL, OPTION_PHASES},
    {"queue-depth", required_argument, NULL, OPTION_DEPTH},
    {"evict", no_argument, NULL, OPTION_EVICT},
    {"behind", no_argument, NULL, OPTION_BEHIND},
    {"prepare-only", no_argument, NULL, OPTION_PREPARE},
    {"timeseries-interval", required_argument, NULL, OPTION_SERIES},
    {"per-rank", no_argument, NULL, OPTION_PER_RANK},
    {"max-bytes-fill", required_argument, NULL, OPTION_FILL},
    {"task-offset", required_argument, NULL, OPTION_TASK_OFFSET},
    {"compressibility", required_argument, NULL, OPTION_COMPRESSIBLE},
    {"dedup", required_argument, NULL, OPTION_REPEATED},
    {0},
};

static int bad_size(bool report, const char *option, const char *value)
{
    return usage_error(report, option,
                       "'%s' is not a size; give bytes, with k, m, g or t for powers of 1024 (4k, 1m)", value);
}

static int parse_phases(struct data_options *o, const char *text, bool report)
{
    o->phase_count = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        bool good = (at[0] == 'w' || at[0] == 'r') && (length == 1 || (length == 2 && at[1] == 'z'));
        if (!good)
            return usage_error(report, "--phases", "'%s' is not a comma list of w, r, wz and rz", text);
        if (o->phase_count == PHASES_MOST)
            return usage_error(report, "--phases", "at most %d phases", PHASES_MOST);
        o->phases[o->phase_count++] =
            (struct phase_plan){.access = at[0] == 'w' ? ACCESS_WRITE : ACCESS_READ, .random = length == 2};
        if (!at[length])
            return EXIT_DONE;
        at += length + 1;
    }
}

static int parse_mode(struct data_options *o, const char *text, bool report)
{
    static const struct {
        const char *name;
        enum data_mode mode;
    } modes[] = {{"incompressible", DATA_STAMPED}, {"offset", DATA_STAMPED}, {"random", DATA_RANDOM},
                 {"timestamp", DATA_CONSTANT}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcasecmp(text, modes[i].name) == 0 || (strlen(text) == 1 && text[0] == modes[i].name[0])) {
            o->data_mode = modes[i].mode;
            return EXIT_DONE;
        }
    return usage_error(report, "-l", "'%s' is none of incompressible, offset, random and timestamp", text);
}

static int directive(void *options, const char *key, const char *value, bool report)
{
    struct data_options *o = options;
    int64_t number;
    char name[64];
    snprintf(name, sizeof name, "-O %s", key);
    if (strcasecmp(key, "numTasksOnNode0") == 0) {
        if (!integer_parse(value, 1, 1 << 30, &o->tasks_on_node0))
            return usage_error(report, name, "'%s' is not a number of tasks from 1", value);
    } else if (strcasecmp(key, "stoneWallingWearOut") == 0) {
        if (!integer_parse(value, 0, 1, &number))
            return usage_error(report, name, "'%s' is neither 0 nor 1", value);
        o->wear_out = number;
    } else if (strcasecmp(key, "stoneWallingWearOutIterations") == 0) {
        if (!integer_parse(value, 0, INT64_MAX, &o->wear_out_operations))
            return usage_error(report, name, "'%s' is not a number of operations", value);
    } else {
        return -1;
    }
    return EXIT_DONE;
}

/* One option; EXIT_DONE or EXIT_USAGE. */
static int apply(struct job *job, struct data_options *o, int code, const char *value, bool report)
{
    int64_t number;
    const char *plain = value ? plain_value(value) : "";
#define WHOLE(name, least, most, target)                                                                     \
    if (!integer_parse(plain, (least), (most), (target)))                                                    \
        return usage_error(report, (name), "'%s' is not a whole number from %lld to %lld", value,            \
                           (long long)(least), (long long)(most));                                           \
    return EXIT_DONE
    switch (code) {
    case 'a': o->api = plain; return EXIT_DONE;
    case 'o':
        if (!value[0])
            return usage_error(report, "-o", "empty name; give a file name");
        o->path = value;
        return EXIT_DONE;
    case 't': return size_parse(plain, &o->transfer) ? EXIT_DONE : bad_size(report, "-t", value);
    case 'b': return size_parse(plain, &o->block) ? EXIT_DONE : bad_size(report, "-b", value);
    case 's': WHOLE("-s", 1, INT32_MAX, &o->segments);
    case 'i': WHOLE("-i", 1, 100000, &o->repetitions);
    case 'd': WHOLE("-d", 0, 1000000, &o->delay);
    case 'T': WHOLE("-T", 0, 1000000, &o->deadline_minutes);
    case 'Q': WHOLE("-Q", 0, INT32_MAX, &o->node_offset);
    case 'X': WHOLE("-X", INT32_MIN + 1, INT32_MAX, &o->reorder_seed);
    case 'G': WHOLE("-G", 0, UINT32_MAX, &o->data_seed);
    case OPTION_ORDER_SEED: WHOLE("--random-offset-seed", 0, INT32_MAX, &o->order_seed);
    case OPTION_TASK_OFFSET: WHOLE("--task-offset", 0, INT32_MAX, &o->task_offset);
    case 'N':
        if (!integer_parse(plain, 1, INT32_MAX, &number))
            return usage_error(report, "-N", "'%s' is not a number of tasks from 1", value);
        job->tasks_wanted = (int)number;
        return EXIT_DONE;
    case 'n':
        return launch_option(job, OPTION_PROCESSES, plain, report);
    case OPTION_ON_NODE:
        if (!comm_is_mpi())
            return usage_error(report, "--on-node", "needs iokernel-mpi: forked processes are on one node");
        if (!integer_parse(plain, 0, 1 << 30, &number))
            return usage_error(report, "--on-node", "'%s' is not the number of a node, counted from 0", value);
        job->node_wanted = (int)number;
        return EXIT_DONE;
    case OPTION_DEPTH:
        if (!integer_parse(plain, 1, 16384, &number))
            return usage_error(report, "--queue-depth", "'%s' is not a number of operations from 1 to 16384", value);
        o->queue_depth = (int)number;
        return EXIT_DONE;
    case 'D':
        if (!number_parse(plain, &o->stonewall) || o->stonewall > 1e9)
            return usage_error(report, "-D", "'%s' is not a number of seconds", value);
        return EXIT_DONE;
    case OPTION_SERIES:
        if (!number_parse(plain, &o->series_interval) || o->series_interval < 0.0001 || o->series_interval > 1e6)
            return usage_error(report, "--timeseries-interval", "'%s' is not a number of seconds from 0.0001", value);
        return EXIT_DONE;
    case OPTION_FILL:
        if (!number_parse(plain, &o->fill_limit) || o->fill_limit > 1)
            return usage_error(report, "--max-bytes-fill", "'%s' is not a share from 0 to 1", value);
        return EXIT_DONE;
    case 'l': return parse_mode(o, plain, report);
    case OPTION_COMPRESSIBLE:
        if (!number_parse(plain, &o->compressible) || o->compressible > 1)
            return usage_error(report, "--compressibility", "'%s' is not a share from 0 to 1", value);
        return EXIT_DONE;
    case OPTION_REPEATED:
        if (!number_parse(plain, &o->repeated) || o->repeated > 1)
            return usage_error(report, "--dedup", "'%s' is not a share from 0 to 1", value);
        return EXIT_DONE;
    case OPTION_PHASES: return parse_phases(o, plain, report);
    case 'O': return directives(job, value, report, directive);
    case 'f': return usage_error(report, "-f", "scripts are not read; give one test per call, see --phases");
    case 'C': o->reorder = REORDER_CONSTANT; return EXIT_DONE;
    case 'Z':
        if (o->reorder == REORDER_CONSTANT)
            return usage_error(report, "-Z", "cannot be combined with -C");
        o->reorder = o->reorder == REORDER_NONE ? REORDER_RANDOM : REORDER_SHUFFLE;
        return EXIT_DONE;
    case 'c': o->collective = true; return EXIT_DONE;
    case 'F': o->file_per_process = true; return EXIT_DONE;
    case 'u': o->unique_dir = true; return EXIT_DONE;
    case 'z': o->random = true; return EXIT_DONE;
    case 'k': o->keep = true; return EXIT_DONE;
    case 'E': o->use_existing = true; return EXIT_DONE;
    case 'e': o->sync_phase = true; return EXIT_DONE;
    case 'Y': o->sync_each = true; return EXIT_DONE;
    case 'g': o->barriers = true; return EXIT_DONE;
    case 'w': o->write = true; return EXIT_DONE;
    case 'r': o->read = true; return EXIT_DONE;
    case 'W': o->check_write = true; return EXIT_DONE;
    case 'R': o->check_read = true; return EXIT_DONE;
    case 'v': job->verbose++; return EXIT_DONE;
    case 'p':
    case OPTION_PREALLOCATE: o->preallocate = true; return EXIT_DONE;
    case 'V':
    case OPTION_FILE_VIEW: o->file_view = true; return EXIT_DONE;
    case 'B':
    case OPTION_DIRECT: o->direct = true; return EXIT_DONE;
    case OPTION_HDF5: o->hdf5_library = value; return EXIT_DONE;
    case OPTION_WEAR_OUT: o->wear_out = true; return EXIT_DONE;
    case OPTION_EVICT: o->evict = true; return EXIT_DONE;
    case OPTION_BEHIND: o->behind = true; return EXIT_DONE;
    case OPTION_PREPARE: o->prepare_only = true; return EXIT_DONE;
    case OPTION_PER_RANK: o->per_rank = true; return EXIT_DONE;
    default: return launch_option(job, code, value, report);
    }
#undef WHOLE
}

/* -w, -r, -W and -R say which phases there are when --phases does not. */
static void default_phases(struct data_options *o)
{
    bool none = !o->write && !o->read && !o->check_write && !o->check_read;
    if (none || o->write || o->check_write)
        o->phases[o->phase_count++] = (struct phase_plan){.access = ACCESS_WRITE};
    if (none || o->read || o->check_read)
        o->phases[o->phase_count++] = (struct phase_plan){.access = ACCESS_READ};
}

static int validate(const struct data_options *o, bool report)
{
    bool reads = false, writes = false, shuffles = false;
    for (int i = 0; i < o->phase_count; i++) {
        reads = reads || o->phases[i].access == ACCESS_READ;
        writes = writes || o->phases[i].access == ACCESS_WRITE;
        shuffles = shuffles || o->phases[i].random;
    }
    if (o->transfer < 8 || o->transfer % 8)
        return usage_error(report, "-t", "%lld is not a multiple of 8 bytes from 8", (long long)o->transfer);
    if (o->block < o->transfer || o->block % o->transfer)
        return usage_error(report, "-b", "%lld is not a multiple of the transfer size %lld", (long long)o->block,
                           (long long)o->transfer);
    int64_t total;
    if (__builtin_mul_overflow(o->block, o->segments, &total) || total > INT64_MAX >> 13)
        return usage_error(report, "-b", "%lld segments of %lld bytes are too large to address",
                           (long long)o->segments, (long long)o->block);
    if (shuffles && o->block == o->transfer)
        return usage_error(report, "-z", "shuffles inside a block, so the block (-b) must be larger than the transfer (-t)");
    if (o->unique_dir && !o->file_per_process)
        return usage_error(report, "-u", "a directory per task needs a file per task (-F)");
    if (shuffles && o->reorder != REORDER_NONE && !o->file_per_process)
        return usage_error(report, o->reorder == REORDER_CONSTANT ? "-C" : "-Z",
                           "cannot be combined with random offsets (-z) in a shared file; use -F");
    if (o->reorder == REORDER_CONSTANT && o->reorder_seed != 0)
        return usage_error(report, "-X", "is the seed of -Z");
    if (o->wear_out && o->stonewall <= 0)
        return usage_error(report, "-O stoneWallingWearOut", "needs a stonewall (-D)");
    if (o->prepare_only && writes)
        return usage_error(report, "--prepare-only", "prepares a read and writes nothing; give -r or --phases r");
    if (o->check_read && !writes && o->data_seed < 0)
        return usage_error(report, "-R", "needs the data seed (-G) that the file was written with");
    bool checkable = data_source_of(o, 0, 0).mode == DATA_CHECKABLE;
    if (checkable && (o->compressible > 0 || o->repeated > 0))
        return usage_error(report, o->compressible > 0 ? "--compressibility" : "--dedup",
                           "data that are checked (-G, -W, -R) are neither compressible nor repeated");
    if (o->sync_each && !writes)
        return usage_error(report, "-Y", "there is no write phase");
    if (o->evict && !reads)
        return usage_error(report, "--evict", "there is no read phase");
    if (o->behind && !reads)
        return usage_error(report, "--behind", "there is no read phase");
    return EXIT_DONE;
}

int data_parse(struct job *job, bool report)
{
    struct data_options *o = calloc(1, sizeof *o);
    if (!o)
        return usage_error(report, "memory", "none left");
    *o = (struct data_options){
        .api = "POSIX", .path = "testFile", .transfer = 262144, .block = 1048576, .segments = 1,
        .repetitions = 1, .order_seed = -1, .data_seed = -1, .node_offset = 1, .task_offset = -1,
        .queue_depth = 1, .series_interval = 0.1, .fill_limit = 0.95,
    };
    job->options = o;
    int code, status = EXIT_DONE;
    bool reordered = false;
    opterr = 0;
    optind = 1;
    while (status == EXIT_DONE &&
           (code = getopt_long(job->argc, job->argv, "+:a:b:BcCd:D:eEf:FgG:i:kl:n:N:o:O:pQ:rRs:t:T:uvVwWX:YzZ",
                               long_options, NULL)) != -1) {
        if (code == '?' || code == ':')
            return unknown_option(job->argv, optind, code, report);
        if (code == 'C' && o->reorder != REORDER_NONE && o->reorder != REORDER_CONSTANT)
            return usage_error(report, "-C", "cannot be combined with -Z");
        status = apply(job, o, code, optarg, report);
        reordered = reordered || code == 'Q' || code == OPTION_TASK_OFFSET;
    }
    if (status == EXIT_DONE)
        status = leftover_arguments(job, optind, report);
    if (status != EXIT_DONE)
        return status;
    if (o->task_offset >= 0 && o->reorder == REORDER_NONE)
        o->reorder = REORDER_CONSTANT;
    if (o->task_offset >= 0 && o->reorder != REORDER_CONSTANT)
        return usage_error(report, "--task-offset", "cannot be combined with -Z");
    if (reordered && o->reorder == REORDER_NONE)
        return usage_error(report, "-Q", "has no effect without -C or -Z");
    if (!o->phase_count)
        default_phases(o);
    else if (o->write || o->read)
        return usage_error(report, "--phases", "cannot be combined with -w or -r");
    for (int i = 0; i < o->phase_count; i++)
        o->phases[i].random = o->phases[i].random || o->random;
    for (int i = 0; i < o->phase_count; i++)
        o->random = o->random || o->phases[i].random;

    o->backend = backend_find(o->api, o->queue_depth);
    if (!o->backend)
        return usage_error(report, "-a", "'%s' is not built in; see --capabilities for the list", o->api);
    status = validate(o, report);
    if (status != EXIT_DONE)
        return status;
    const char *problem = o->backend->check(o);
    if (problem) {
        const char *colon = strchr(problem, ':');
        char option[64];
        snprintf(option, sizeof option, "%.*s", (int)(colon - problem), problem);
        return usage_error(report, option, "%s", colon + 2);
    }
    if (job->processes == 0)
        job->processes = job->tasks_wanted > 0 ? job->tasks_wanted : 1;
    return EXIT_DONE;
}

struct data_source data_source_of(const struct data_options *o, int64_t owner, int64_t seed)
{
    bool checkable = o->check_write || o->check_read || o->data_seed >= 0;
    return (struct data_source){.mode = checkable ? DATA_CHECKABLE : o->data_mode, .owner = owner, .seed = seed,
                                .compressible = o->compressible, .repeated = o->repeated};
}

int64_t data_bytes_per_task(const struct data_options *o)
{
    return o->block * o->segments;
}

struct order_geometry data_geometry(const struct data_options *o, int tasks)
{
    return (struct order_geometry){.transfer = o->transfer,
                                   .block = o->block,
                                   .segments = o->segments,
                                   .tasks = tasks,
                                   .file_per_process = o->file_per_process};
}

char *data_directory(const struct data_options *o, int task)
{
    const char *slash = strrchr(o->path, '/');
    int folder = slash ? (int)(slash - o->path) + 1 : 0;
    char *name = NULL;
    return asprintf(&name, "%.*s%d", folder, o->path, task) < 0 ? NULL : name;
}

char *data_path(const struct data_options *o, int task)
{
    char *name = NULL;
    if (!o->file_per_process)
        return strdup(o->path);
    if (!o->unique_dir)
        return asprintf(&name, "%s.%08d", o->path, task) < 0 ? NULL : name;
    const char *slash = strrchr(o->path, '/');
    char *folder = data_directory(o, task);
    int length = folder ? asprintf(&name, "%s/%s.%08d", folder, slash ? slash + 1 : o->path, task) : -1;
    free(folder);
    return length < 0 ? NULL : name;
}
