/* What the metadata personality was asked for, and the tree that follows from it. */
#ifndef IOKERNEL_OPTIONS_MD_H
#define IOKERNEL_OPTIONS_MD_H

#include <stdbool.h>
#include <stdint.h>

struct job;

struct md_options {
    const char *directory;         /* -d */
    int64_t items_wanted;          /* -n, per task; 0 when not given */
    int64_t per_directory_wanted;  /* -I; 0 when not given */
    int64_t branches, depth;       /* -b -z */
    bool leaf_only;                /* -L */
    bool unique;                   /* -u */
    int64_t write_bytes, read_bytes; /* -w -e */
    bool sync, verify;             /* -y -X */
    bool create, stat, read, remove; /* -C -T -E -r */
    bool rename_directories, rename_files; /* -U --rename */
    bool directories, files;       /* -D -F */
    int64_t iterations, stride, delay; /* -i -N -p */
    bool random;                   /* -R */
    int64_t random_seed;           /* --random-seed; -1 when not given */
    int64_t data_seed;             /* -G; -1 when not given */
    double stonewall;              /* -W seconds, 0 for none */
    double again;                  /* --again seconds, 0 for none */
    double series_interval;        /* seconds */

    /* what follows */
    int64_t directories_in_tree;   /* including its root */
    int64_t leaves;
    int64_t per_directory;         /* items of one task in one directory that holds items */
    int64_t per_tree;              /* items of one task in one tree */
    int64_t trees;                 /* test directories per iteration */
};

/* Reads the arguments of a job; see struct personality. */
int md_parse(struct job *job, bool report);

#endif
