#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "json.h"
#include "size.h"

#define SKEW_ROUNDS 5

/*
 * Reads all wall clocks right after a barrier. Ranks leave a barrier at
 * slightly different times, which only adds to the difference: the smallest
 * of a few rounds bounds the skew best.
 */
static double measure_skew(const struct comm *c)
{
    double best = 0;
    for (int round = 0; round < SKEW_ROUNDS; round++) {
        comm_barrier(c);
        double now = clock_epoch(), earliest = now, latest = now;
        comm_reduce_double(c, &earliest, 1, REDUCE_MIN);
        comm_reduce_double(c, &latest, 1, REDUCE_MAX);
        if (round == 0 || latest - earliest < best)
            best = latest - earliest;
    }
    return best;
}

struct identity {
    char host[256];
    int64_t session;
};

static const char *session_layout(const struct layout *l, const struct identity *all, int size)
{
    bool own = true, shared = true;
    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++)
            if (l->node_of[a] == l->node_of[b]) {
                own = own && all[a].session != all[b].session;
                shared = shared && all[a].session == all[b].session;
            }
    return own ? "own" : shared ? "shared" : "mixed";
}

void layout_host(char *host, size_t size, int started)
{
    const char *fake = getenv("IOR_FAKE_TASK_PER_NODES");
    int64_t per_node;
    memset(host, 0, size);
    gethostname(host, size - 24);
    if (fake && integer_parse(fake, 1, 1 << 30, &per_node))
        snprintf(host + strlen(host), 24, "#%d", started / (int)per_node);
}

bool layout_build(struct layout *l, struct comm *c)
{
    memset(l, 0, sizeof *l);
    struct identity mine = {.session = getsid(0)};
    layout_host(mine.host, sizeof mine.host, c->started);
    memcpy(c->host, mine.host, sizeof c->host);

    size_t size = (size_t)c->size;
    struct identity *all = calloc(size, sizeof *all);
    l->node_of = calloc(size, sizeof *l->node_of);
    l->tasks_on = calloc(size, sizeof *l->tasks_on);
    l->hosts = calloc(size, sizeof *l->hosts);
    int64_t failed = !all || !l->node_of || !l->tasks_on || !l->hosts;
    comm_reduce_int(c, &failed, 1, REDUCE_MAX);
    if (failed) {
        free(all);
        layout_free(l);
        return false;
    }
    comm_gather(c, &mine, sizeof mine, all);
    comm_bcast(c, all, size * sizeof *all, 0);
    for (int rank = 0; rank < c->size; rank++) {
        int node = 0;
        while (node < l->nodes && strcmp(l->hosts[node], all[rank].host) != 0)
            node++;
        if (node == l->nodes) {
            memcpy(l->hosts[node], all[rank].host, sizeof l->hosts[node]);
            l->nodes++;
        }
        l->node_of[rank] = node;
        l->tasks_on[node]++;
    }
    l->tasks_on_node0 = l->tasks_on[0];
    l->block_mapping = c->size == 1 || l->node_of[1] == 0;
    while (l->node_of[l->leader] != l->node_of[c->rank])
        l->leader++;
    l->sessions = session_layout(l, all, c->size);
    free(all);
    l->clock_skew = measure_skew(c);
    return true;
}

void layout_free(struct layout *l)
{
    free(l->node_of);
    free(l->tasks_on);
    free(l->hosts);
    memset(l, 0, sizeof *l);
}

void layout_json(const struct layout *l, int tasks, struct json *j)
{
    json_double(j, "clockSkewSeconds", l->clock_skew);
    json_string(j, "sessionLayout", l->sessions);
    json_int(j, "tasks", tasks);
    json_int(j, "tasksPerNode", l->tasks_on_node0);
    json_int(j, "nodes", l->nodes);
    json_array(j, "hosts");
    for (int node = 0; node < l->nodes; node++)
        json_string(j, NULL, l->hosts[node]);
    json_array_end(j);
}
