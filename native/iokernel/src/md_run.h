/* One rank's view of a metadata run, and its phases. */
#ifndef IOKERNEL_MD_RUN_H
#define IOKERNEL_MD_RUN_H

#include "job.h"
#include "layout.h"
#include "md_tree.h"
#include "options_md.h"

/* In the order in which mdtest runs them; file rename is ours. */
enum {
    MD_TREE_CREATE,
    MD_DIRECTORY_CREATE,
    MD_DIRECTORY_STAT,
    MD_DIRECTORY_RENAME,
    MD_DIRECTORY_REMOVE,
    MD_FILE_CREATE,
    MD_FILE_STAT,
    MD_FILE_READ,
    MD_FILE_RENAME,
    MD_FILE_REMOVE,
    MD_TREE_REMOVE,
    MD_PHASES
};

struct md_run {
    struct job *job;
    const struct md_options *o;
    struct comm comm;
    struct layout layout;
    struct failure failure;
    struct namer namer;
    char *other_name;       /* where a rename leads to */
    char *buffer;
    int64_t *shuffled;      /* -R: order of the items of a tree, or NULL */
    int64_t random_seed, data_seed;
    int64_t stride;         /* in tasks */
    int64_t per_tree;       /* items of a task in a tree; a stonewall makes it smaller */
    const char *operation;  /* the system call in progress */
    int64_t bytes;          /* moved in the current phase */
};

struct md_phase {
    const char *key, *name; /* stable identifier; what mdtest prints */
    bool tree;              /* works on the directories of the tree, not on items */
    bool backwards;         /* children before parents */
    bool directory;         /* items are directories */
    bool shuffled;          /* -R applies */
    bool renames, writes, reads;
    bool repeatable;        /* leaves things as they were: --again applies */
    int shift;              /* works on the items of the task this many strides further */
    int (*operation)(struct md_run *run, const char *path);
};

extern const struct md_phase md_phases[MD_PHASES];

/* Collective: one phase and its result; false when the run must end. */
bool md_phase_run(struct md_run *run, int phase, int64_t iteration);

/* See struct personality. */
void md_report(const struct job *job, struct json *j);

#endif
