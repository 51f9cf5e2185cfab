#include <stdlib.h>

#include "data.h"

int reorder_offset(const struct data_run *run, int rank, int repetition)
{
    const struct data_options *o = run->o;
    const int tasks = run->comm.size;
    const int64_t on_node0 = o->tasks_on_node0 ? o->tasks_on_node0 : run->layout.tasks_on_node0;
    if (o->reorder == REORDER_NONE)
        return 0;
    if (o->reorder == REORDER_CONSTANT) {
        if (o->task_offset >= 0)
            return (int)(o->task_offset % tasks);
        /* consecutive ranks fill a node: the next node begins as many ranks later as a node holds */
        int64_t shift = run->layout.block_mapping ? on_node0 : 1;
        return (int)(o->node_offset * shift % tasks);
    }
    int64_t nodes = o->node_offset < run->layout.nodes ? o->node_offset : run->layout.nodes - 1;
    unsigned seed = (unsigned)(o->reorder_seed < 0 ? -o->reorder_seed + repetition : o->reorder_seed);
    if (o->reorder == REORDER_RANDOM) {
        int64_t least = nodes * on_node0;
        int offset;
        srand((unsigned)rank + seed);
        do
            offset = rand() % tasks;
        while (least < tasks && offset < least);
        return offset;
    }
    /* a permutation that every rank draws alike */
    int *order = calloc((size_t)tasks, sizeof *order), target;
    if (!order)
        return 0;
    srand(seed);
    for (int i = 0; i < tasks; i++)
        order[i] = i;
    for (int i = 0; i < tasks; i++) {
        int other = i + rand() % (tasks - i), task = order[other];
        order[other] = order[i];
        order[i] = task;
    }
    target = order[rank];
    free(order);
    return (target - rank + tasks) % tasks;
}
