/*
 * Names of mdtest's tree:
 *
 *   DIR/test-dir.<iteration>-<tree>/mdtest_tree[.<task>].0/mdtest_tree[.<task>].<d>/.../file.mdtest.<task>.<number>
 *
 * Directories of a tree are numbered breadth first from 0, its root. A task's
 * items are numbered so that number / items-per-directory is the directory.
 */
#ifndef IOKERNEL_MD_TREE_H
#define IOKERNEL_MD_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options_md.h"

/* Builds names one after the other; keeps the directory part while it does not change. */
struct namer {
    const struct md_options *o;
    char *text; /* the name last built; text and room are the namer's own */
    size_t room, folder_length;
    int64_t iteration, tree, directory;
    int task;
};

bool namer_open(struct namer *n, const struct md_options *o);
void namer_close(struct namer *n);

/* DIR/test-dir.<iteration>-<tree> */
const char *name_test_directory(struct namer *n, int64_t iteration, int64_t tree);

/* A directory of a task's tree (of the common tree without -u). */
const char *name_directory(struct namer *n, int64_t iteration, int64_t tree, int task, int64_t directory);

/* The index-th item (from 0, per tree) of a task; suffix is appended. */
const char *name_item(struct namer *n, int64_t iteration, int64_t tree, int task, bool directory, int64_t index,
                      const char *suffix);

#endif
