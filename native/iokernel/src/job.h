/*
 * One run of the program: what was asked for, and the board on which its
 * processes leave what must survive them.
 */
#ifndef IOKERNEL_JOB_H
#define IOKERNEL_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "comm.h"
#include "failure.h"

/* One measured phase, as the summary needs it. */
struct row {
    int series;        /* which line of the summary it belongs to */
    double bytes;      /* moved */
    double operations; /* done */
    double seconds;    /* that bandwidth and rate refer to */
};

/*
 * Written by the ranks, read by the reporter. With forked processes it lies in
 * shared memory and the reporter is the parent: a killed rank cannot take the
 * results of finished phases with it. With MPI it is rank 0's own memory.
 */
struct board {
    struct failure failure;
    int nodes, tasks_on_node0;
    bool deadline_reached;  /* -T */
    int64_t data_seed;      /* in use, whether given or drawn */
    int64_t order_seed;     /* likewise; -1 while none was drawn */
    int trees_created;      /* metadata: test directories that this run made, in order */
    bool root_created;      /* metadata: -d itself was made */
    int row_count, row_capacity;
    int64_t journal_bytes;  /* of complete results: a rank may be killed in the middle of writing one */
    struct row *rows;       /* inside the same memory */
    unsigned char *marks;   /* one byte per rank, see MARK_* */
};

enum { MARK_FILE = 1, MARK_DIRECTORY = 2 }; /* this run made the rank's file, the rank's directory */

struct job;

/* A kind of benchmark. The functions are collective over the ranks unless said otherwise. */
struct personality {
    const char *name; /* first argument that selects it; NULL for the default */
    /* Not collective: reads the arguments; EXIT_DONE, or EXIT_USAGE after a message. */
    int (*parse)(struct job *job, bool report);
    int (*row_capacity)(const struct job *job);
    int (*body)(struct job *job, const struct comm *c);
    /* Not collective: removes what one rank of this run made, after a failure. */
    void (*clean)(const struct job *job, int rank);
    /* Not collective: the members "tests" and "summary" of the document. */
    void (*report)(const struct job *job, struct json *j);
};

struct job {
    int argc;
    char **argv;
    const struct personality *personality;
    void *options;            /* the personality's own */
    int processes;            /* ranks to start (fork), or 0: what the launcher started (MPI) */
    int tasks;                /* ranks that take part; set by comm_run */
    int tasks_wanted;         /* -N, or 0 for all */
    int node_wanted;          /* --on-node: tasks of this node alone, counted from 0; or -1 for all */
    bool own_session;         /* each forked rank in a session of its own */
    const char *summary_file; /* NULL: standard output */
    char *summary_copy;       /* its memory, when the name came out of a longer argument */
    int verbose;
    double began;             /* epoch seconds */
    struct board *board;
    FILE *journal;            /* finished results as JSON text, in a file without a name */
};

/* Bytes a board needs, and laying it out in zeroed memory of that size. */
size_t board_size(const struct job *job, int tasks);
struct board *board_place(void *memory, const struct job *job, int tasks);

/* Leaves one row for the summary. */
void board_add(struct board *board, struct row row);

/*
 * Collective, at the end of a body: puts a failure of any rank on the board. Returns the exit status
 * that it means, or `status` when there is none.
 */
int board_settle(struct board *board, struct failure *f, const struct comm *c, int status);

/* An open file without a name, shared by forked processes; NULL when none can be made. */
FILE *journal_open(void);

/* Puts a finished result, one JSON value, in the journal. */
void journal_add(const struct job *job, const char *text, size_t length);

/* Copies the journal, as members of an array, into a document. */
void journal_copy(const struct job *job, struct json *j);

#endif
