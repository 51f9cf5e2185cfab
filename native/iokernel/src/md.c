#include "md.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "md_run.h"
#include "md_tree.h"
#include "pattern.h"

static int row_capacity(const struct job *job)
{
    const struct md_options *o = job->options;
    return (int)o->iterations * MD_PHASES;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

/* Removes whole test directories, but only those that this run made. */
static void clean(const struct job *job, int rank)
{
    const struct md_options *o = job->options;
    struct namer n;
    if (rank != 0 || !namer_open(&n, o))
        return;
    for (int64_t i = 0; i < job->board->trees_created; i++)
        nftw(name_test_directory(&n, i / o->trees, i % o->trees), remove_entry, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    namer_close(&n);
    if (job->board->root_created)
        rmdir(o->directory);
}

static bool selected(const struct md_options *o, int phase)
{
    switch (phase) {
    case MD_TREE_CREATE: return o->create;
    case MD_DIRECTORY_CREATE: return o->directories && o->create;
    case MD_DIRECTORY_STAT: return o->directories && o->stat;
    case MD_DIRECTORY_RENAME: return o->directories && o->rename_directories && o->per_tree > 1;
    case MD_DIRECTORY_REMOVE: return o->directories && o->remove;
    case MD_FILE_CREATE: return o->files && o->create;
    case MD_FILE_STAT: return o->files && o->stat;
    case MD_FILE_READ: return o->files && o->read;
    case MD_FILE_RENAME: return o->files && o->rename_files && o->per_tree > 1;
    case MD_FILE_REMOVE: return o->files && o->remove;
    default: return o->remove;
    }
}

/*
 * Makes the test directories of an iteration. Each is noted before it is made: a rank killed between the two
 * leaves a note too many, which costs nothing (look() found none of them), not a directory that nobody removes.
 */
static void make_test_directories(struct md_run *run, int64_t iteration)
{
    for (int64_t tree = 0; run->comm.rank == 0 && tree < run->o->trees && !run->failure.set; tree++) {
        const char *path = name_test_directory(&run->namer, iteration, tree);
        run->job->board->trees_created++;
        if (mkdir(path, 0775) != 0) {
            run->job->board->trees_created--;
            failure_note(&run->failure, "mkdir", path, errno, NULL);
        }
    }
}

static void remove_test_directories(struct md_run *run, int64_t iteration)
{
    for (int64_t tree = 0; run->comm.rank == 0 && tree < run->o->trees; tree++) {
        const char *path = name_test_directory(&run->namer, iteration, tree);
        if (rmdir(path) != 0)
            failure_note(&run->failure, "rmdir", path, errno, NULL);
    }
}

/* The directory that holds them all may be there already, and is then not ours to remove. */
static void make_root(const char *path, struct board *board)
{
    struct stat st;
    board->root_created = lstat(path, &st) != 0; /* before it is made, as above */
    if (board->root_created && mkdir(path, 0775) != 0)
        board->root_created = false;
}

static void iterations(struct md_run *run)
{
    const struct md_options *o = run->o;
    for (int64_t iteration = 0; iteration < o->iterations; iteration++) {
        run->per_tree = o->per_tree;
        if (o->create)
            make_test_directories(run, iteration);
        if (failure_agree(&run->failure, &run->comm, "prepare"))
            return;
        for (int phase = 0; phase < MD_PHASES; phase++) {
            bool starts = phase == MD_DIRECTORY_CREATE || phase == MD_FILE_CREATE;
            if (starts && o->delay)
                sleep_ns(o->delay * NS_PER_S);
            if (selected(o, phase) && !md_phase_run(run, phase, iteration))
                return;
            if (run->job->verbose && run->comm.rank == 0 && selected(o, phase))
                fprintf(stderr, "iokernel: iteration %lld, %s done\n", (long long)iteration, md_phases[phase].key);
        }
        if (o->remove)
            remove_test_directories(run, iteration);
        if (failure_agree(&run->failure, &run->comm, "remove"))
            return;
    }
}

/* Statistics of the file system that the directory is on, or will be on. */
static bool file_system(const struct md_options *o, struct statvfs *fs)
{
    if (statvfs(o->directory, fs) == 0)
        return true;
    char *parent = strdup(o->directory), *slash = parent ? strrchr(parent, '/') : NULL;
    if (slash)
        slash[slash == parent] = '\0';
    bool found = statvfs(slash ? parent : ".", fs) == 0;
    free(parent);
    return found;
}

/* Rank 0: mistakes that only the file system shows. Returns a usage error's text, or NULL. */
static const char *look(struct md_run *run, char *text, size_t size)
{
    const struct md_options *o = run->o;
    struct stat st;
    struct statvfs fs;
    if (stat(o->directory, &st) == 0 && !S_ISDIR(st.st_mode)) {
        snprintf(text, size, "%s is not a directory", o->directory);
        return text;
    }
    for (int64_t i = 0; o->create && i < o->iterations * o->trees; i++) {
        const char *path = name_test_directory(&run->namer, i / o->trees, i % o->trees);
        if (lstat(path, &st) == 0) {
            snprintf(text, size, "%s is there already; remove it with -r or use another directory", path);
            return text;
        }
    }
    if (o->create && file_system(o, &fs)) {
        double items = (double)(o->per_tree * o->trees) * run->comm.size, block = (double)fs.f_frsize;
        /* with a remove phase the directories are gone before the files come */
        double inodes = items * (o->directories && o->files && !o->remove ? 2 : 1);
        double bytes = o->files ? items * (double)o->write_bytes : 0;
        if (fs.f_files > 0 && inodes > (double)fs.f_favail) {
            snprintf(text, size, "%.0f items do not fit, the file system has room for %.0f", inodes,
                     (double)fs.f_favail);
            return text;
        }
        if (bytes > 0.95 * (double)fs.f_bavail * block) {
            snprintf(text, size, "%.0f bytes do not fit, the file system has room for %.0f", bytes,
                     (double)fs.f_bavail * block);
            return text;
        }
    }
    return NULL;
}

/* mdtest's permutation of the items of a tree, drawn per task. */
static bool shuffle(struct md_run *run)
{
    const struct md_options *o = run->o;
    if (!o->random)
        return true;
    run->shuffled = malloc((size_t)o->per_tree * sizeof *run->shuffled);
    if (!run->shuffled)
        return false;
    for (int64_t i = 0; i < o->per_tree; i++)
        run->shuffled[i] = i;
    srand((unsigned)(run->random_seed + run->comm.rank));
    for (int64_t n = o->per_tree - 1; n > 0; n--) {
        int64_t k = (int64_t)((double)rand() / (double)RAND_MAX * (double)n), item = run->shuffled[k];
        run->shuffled[k] = run->shuffled[n];
        run->shuffled[n] = item;
    }
    return true;
}

static void allocate(struct md_run *run)
{
    const struct md_options *o = run->o;
    int64_t size = o->write_bytes > o->read_bytes ? o->write_bytes : o->read_bytes;
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, size ? (size_t)size : 1) != 0 || !shuffle(run) ||
        !(run->other_name = malloc(run->namer.room)))
        failure_note(&run->failure, "allocate", NULL, ENOMEM, NULL);
    run->buffer = memory;
}

/* Collective. EXIT_USAGE after a message when rank 0 found a mistake. */
static int check(struct md_run *run)
{
    char text[4096 + 256] = "";
    int64_t wrong = run->comm.rank == 0 && look(run, text, sizeof text);
    comm_reduce_int(&run->comm, &wrong, 1, REDUCE_MAX);
    return wrong ? usage_error(run->comm.rank == 0, "-d", "%s", text) : EXIT_DONE;
}

static int body(struct job *job, const struct comm *comm)
{
    struct md_run run = {.job = job, .o = job->options, .comm = *comm};
    const struct md_options *o = run.o;
    int status = EXIT_DONE;
    bool ready = layout_build(&run.layout, &run.comm);
    if (!namer_open(&run.namer, o) || !ready)
        failure_note(&run.failure, "allocate", NULL, ENOMEM, NULL);
    if (failure_agree(&run.failure, &run.comm, "prepare"))
        goto end;

    run.random_seed = o->random_seed > 0 ? o->random_seed : (int64_t)time(NULL) & INT32_MAX;
    run.data_seed = o->data_seed >= 0 ? o->data_seed : data_salt();
    comm_bcast(&run.comm, &run.random_seed, sizeof run.random_seed, 0);
    comm_bcast(&run.comm, &run.data_seed, sizeof run.data_seed, 0);
    /* with several nodes filled one after the other, a stride counts nodes */
    run.stride = o->stride * (run.layout.nodes > 1 && run.layout.block_mapping ? run.layout.tasks_on_node0 : 1);
    if (run.comm.rank == 0) {
        job->board->nodes = run.layout.nodes;
        job->board->tasks_on_node0 = run.layout.tasks_on_node0;
        job->board->data_seed = run.data_seed;
        job->board->order_seed = o->random ? run.random_seed : -1;
    }
    status = check(&run);
    if (status == EXIT_DONE) {
        allocate(&run);
        if (run.comm.rank == 0 && o->create)
            make_root(o->directory, job->board);
        if (!failure_agree(&run.failure, &run.comm, "prepare"))
            iterations(&run);
        if (!run.failure.set && run.comm.rank == 0 && job->board->root_created && o->remove)
            rmdir(o->directory);
    }
end:
    status = board_settle(job->board, &run.failure, &run.comm, status);
    layout_free(&run.layout);
    namer_close(&run.namer);
    free(run.buffer);
    free(run.other_name);
    free(run.shuffled);
    return status;
}

const struct personality md_personality = {
    .name = "md",
    .parse = md_parse,
    .row_capacity = row_capacity,
    .body = body,
    .clean = clean,
    .report = md_report,
};
