/* Which rank runs on which node. */
#ifndef IOKERNEL_LAYOUT_H
#define IOKERNEL_LAYOUT_H

#include <stdbool.h>

#include "comm.h"

/*
 * The name of the node that a process is on, into `host` of that size; with IOR_FAKE_TASK_PER_NODES a number after
 * it, so that one machine can stand for several nodes.
 */
void layout_host(char *host, size_t size, int started);

struct layout {
    int nodes;
    int *node_of;         /* node of each rank, numbered in the order of first appearance */
    int *tasks_on;        /* ranks on each node */
    char (*hosts)[256];   /* name of each node */
    int tasks_on_node0;   /* ranks on the node of rank 0 */
    bool block_mapping;   /* ranks 0 and 1 share a node: consecutive ranks fill a node */
    int leader;           /* lowest rank on this rank's node */
    double clock_skew;    /* largest difference between the wall clocks of two ranks, seconds (upper bound) */
    const char *sessions; /* "own": every rank in its own session; "shared": one per node; "mixed" */
};

/*
 * Collective; also names c->host. Nodes are told apart by host name. The
 * environment variable IOR_FAKE_TASK_PER_NODES, known from IOR, makes this
 * many consecutive ranks a node each, to try node-aware options on one
 * machine. Returns false when memory is short.
 */
bool layout_build(struct layout *l, struct comm *c);
void layout_free(struct layout *l);

/* The members of a result that say where it was measured. */
struct json;
void layout_json(const struct layout *l, int tasks, struct json *j);

#endif
