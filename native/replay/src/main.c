/*
 * tiercel-replay: re-issues the I/O of a traced program on other storage.
 *
 *   tiercel-replay RECIPE --root FOLDER [--root FOLDER]... --prepare
 *   tiercel-replay RECIPE --root FOLDER [--root FOLDER]... [--think] [--summary-file FILE]
 *
 * --think: keep the gaps between a stream's operations.
 * Exit status: 0 done, 1 failed, 2 mistake of the user. The summary is one JSON document; times in seconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prepare.h"
#include "stream.h"

static const char *const NAMES[GROUPS] = {"read", "write", "metadata", "sync"};

struct arguments {
    const char *recipe, *summary;
    char **roots;
    uint32_t root_count;
    bool prepare, think;
};

static int usage(const char *what, const char *word)
{
    fprintf(stderr, "tiercel-replay: %s%s\n", what, word);
    fputs("usage: tiercel-replay RECIPE --root FOLDER... [--prepare] [--think] [--summary-file FILE]\n", stderr);
    return 2;
}

static struct board *new_board(const struct recipe *recipe)
{
    size_t head = (sizeof(struct board) + 63) / 64 * 64;
    size_t done = (recipe->stream_count * sizeof(_Atomic uint32_t) + 63) / 64 * 64;
    size_t size = head + 2 * done + (recipe->file_count + 1u) * sizeof(struct tally);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct board *board = (struct board *)(void *)memory;
    board->done = (_Atomic uint32_t *)(void *)(memory + head);
    board->waiting = (_Atomic uint32_t *)(void *)(memory + head + done);
    board->files = (struct tally *)(void *)(memory + head + 2 * done);
    return board;
}

/* Forks a process for each stream and waits for them; the wall-clock time in nanoseconds, or -1. */
static int64_t run(const struct recipe *recipe, char *const *roots, struct board *board, bool think)
{
    pid_t parent = getpid();
    board->began = now_ns();
    for (uint32_t i = 0; i < recipe->stream_count; i++) {
        pid_t child = fork();
        if (child < 0) {
            fprintf(stderr, "tiercel-replay: fork: %s\n", strerror(errno));
            atomic_fetch_add(&board->failed, 1); /* those that run give up waiting */
            break;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(getppid() != parent || !stream_run(recipe, roots, i, board, think));
        }
    }
    int status;
    bool good = true;
    while (wait(&status) > 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            atomic_fetch_add(&board->failed, 1);
            good = false;
        }
    }
    return good && !atomic_load(&board->failed) ? now_ns() - board->began : -1;
}

static void report_groups(FILE *out, const struct tally *t)
{
    for (int g = 0; g < GROUPS; g++)
        fprintf(out, "%s\"%s\":{\"operations\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.9f}", g ? "," : "", NAMES[g],
                (uint64_t)t->count[g], (uint64_t)t->bytes[g], (double)t->time[g] / 1e9);
}

static void report(FILE *out, const struct recipe *recipe, struct board *board, int64_t wall)
{
    static struct tally all;
    for (uint32_t i = 0; i < recipe->file_count; i++)
        for (int g = 0; g < GROUPS; g++) {
            all.count[g] += board->files[i].count[g];
            all.bytes[g] += board->files[i].bytes[g];
            all.time[g] += board->files[i].time[g];
        }
    fprintf(out, "{\"replay\":2,\"wallSeconds\":%.9f,\"streams\":%" PRIu32 ",\"implicitOpens\":%" PRIu32 ",\"absent\":%" PRIu32 ",",
            (double)wall / 1e9, recipe->stream_count, (uint32_t)board->implicit_opens, (uint32_t)board->absent);
    fputs("\"total\":{", out);
    report_groups(out, &all);
    fputs("},\"files\":[", out);
    for (uint32_t i = 0; i < recipe->file_count; i++) {
        fputs(i ? ",{" : "{", out);
        report_groups(out, &board->files[i]);
        fputs("}", out);
    }
    fputs("],\"complete\":true}\n", out);
}

static int replay(const struct arguments *a, const struct recipe *recipe)
{
    struct board *board = new_board(recipe);
    if (board == NULL)
        return usage("out of memory", "");
    int64_t wall = run(recipe, a->roots, board, a->think);
    if (wall < 0) {
        fprintf(stderr, "tiercel-replay: error: %s\n", board->message[0] ? board->message : "a stream ended early");
        return 1;
    }
    FILE *out = a->summary ? fopen(a->summary, "w") : stdout;
    if (out == NULL) {
        fprintf(stderr, "tiercel-replay: %s: %s\n", a->summary, strerror(errno));
        return 1;
    }
    report(out, recipe, board, wall);
    if (fclose(out) != 0) {
        fprintf(stderr, "tiercel-replay: the summary is not complete: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct arguments a = {.roots = calloc((size_t)argc, sizeof(char *))};
    if (a.roots == NULL)
        return 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0)
            return printf("tiercel-replay 2\n") < 0;
        if (strcmp(argv[i], "--prepare") == 0)
            a.prepare = true;
        else if (strcmp(argv[i], "--think") == 0)
            a.think = true;
        else if (strcmp(argv[i], "--root") == 0 && i + 1 < argc)
            a.roots[a.root_count++] = argv[++i];
        else if (strcmp(argv[i], "--summary-file") == 0 && i + 1 < argc)
            a.summary = argv[++i];
        else if (a.recipe == NULL && argv[i][0] != '-')
            a.recipe = argv[i];
        else
            return usage("not understood: ", argv[i]);
    }
    struct recipe recipe;
    if (a.recipe == NULL)
        return usage("no recipe", "");
    if (!recipe_read(&recipe, a.recipe))
        return 2;
    if (recipe.root_count > a.root_count)
        return usage("the recipe names more roots than --root does", "");
    if (a.prepare)
        return prepare(&recipe, a.roots) ? 0 : 1;
    return replay(&a, &recipe);
}
