/* The result of a phase, in IOR's terms and beyond them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "behind.h"
#include "clock.h"
#include "collect.h"
#include "data.h"
#include "document.h"
#include "json.h"

/* What rank 0 works with. */
struct whole {
    struct rank_record *ranks;
    struct cache_record {
        struct residency r;
        int64_t measured, method; /* pointers do not travel: 0 none, 1 mincore, 2 cachestat */
    } *caches;
    double stamp[STAMPS]; /* seconds after the earliest barrier exit; earliest start, latest stop */
};

/*
 * Stamps of one node share a clock. Between nodes the only common moment is
 * the barrier before open: each node counts from the earliest exit of its
 * ranks from it.
 */
static void common_stamps(const struct data_run *run, struct whole *w)
{
    int tasks = run->comm.size;
    for (int s = 0; s < STAMPS; s++)
        w->stamp[s] = s % 2 ? -INFINITY : INFINITY;
    for (int node = 0; node < run->layout.nodes; node++) {
        int64_t zero = INT64_MAX;
        for (int i = 0; i < tasks; i++)
            if (run->layout.node_of[i] == node && w->ranks[i].zero < zero)
                zero = w->ranks[i].zero;
        for (int i = 0; i < tasks; i++)
            if (run->layout.node_of[i] == node) {
                w->ranks[i].zero -= zero;
                for (int s = 0; s < STAMPS; s++) {
                    w->ranks[i].stamp[s] -= zero;
                    double moment = seconds(w->ranks[i].stamp[s]);
                    w->stamp[s] = s % 2 ? fmax(w->stamp[s], moment) : fmin(w->stamp[s], moment);
                }
            }
    }
}

static void residency_members(struct json *j, int64_t file, int64_t resident, int64_t dirty)
{
    json_int(j, "fileBytes", file);
    json_int(j, "residentBytes", resident);
    if (dirty < 0)
        json_null(j, "dirtyBytes");
    else
        json_int(j, "dirtyBytes", dirty);
}

static void json_residency(const struct data_run *run, const struct whole *w, struct json *j)
{
    static const char *const methods[] = {"none", "mincore", "cachestat"};
    int64_t file = 0, resident = 0, dirty = 0, method = 2;
    bool memory = false;
    const char *unknown = NULL;
    for (int i = 0; i < run->comm.size; i++) {
        const struct cache_record *c = &w->caches[i];
        if (!c->measured)
            continue;
        file += c->r.file;
        resident += c->r.resident;
        dirty = dirty < 0 || c->r.dirty < 0 ? -1 : dirty + c->r.dirty;
        method = c->method < method ? c->method : method;
        memory = memory || c->r.caching == CACHING_MEMORY;
        struct residency seen = c->r;
        seen.method = methods[c->method];
        unknown = unknown ? unknown : residency_unknown(&seen);
    }
    json_object(j, "residency");
    residency_members(j, file, resident, dirty);
    json_double(j, "fraction", method ? (double)resident / (double)file : (double)NAN);
    json_string(j, "method", methods[method]);
    json_string(j, "unknown", method ? NULL : unknown);
    json_bool(j, "memoryBacked", memory);
    json_bool(j, "evictRequested", run->o->evict);
    json_array(j, "perNode");
    for (int node = 0; node < run->layout.nodes; node++) {
        int64_t f = 0, r = 0, d = 0;
        for (int i = 0; i < run->comm.size; i++)
            if (w->caches[i].measured && run->layout.node_of[i] == node) {
                f += w->caches[i].r.file;
                r += w->caches[i].r.resident;
                d = d < 0 || w->caches[i].r.dirty < 0 ? -1 : d + w->caches[i].r.dirty;
            }
        json_object(j, NULL);
        json_string(j, "host", run->layout.hosts[node]);
        residency_members(j, f, r, d);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void json_task_offset(const struct phase *p, struct json *j)
{
    static const char *const kinds[] = {"none", "constant", "random", "shuffle"};
    const struct data_run *run = p->run;
    const struct data_options *o = run->o;
    const struct layout *l = &run->layout;
    int crossing = 0;
    for (int i = 0; i < run->comm.size; i++) {
        int offset = p->access == ACCESS_READ ? reorder_offset(run, i, p->repetition) : 0;
        crossing += l->node_of[(i + offset) % run->comm.size] != l->node_of[i];
    }
    bool constant = o->reorder == REORDER_CONSTANT && p->access == ACCESS_READ;
    int64_t on_node0 = o->tasks_on_node0 ? o->tasks_on_node0 : l->tasks_on_node0;
    int64_t requested = o->task_offset >= 0 ? o->task_offset : o->node_offset * (l->block_mapping ? on_node0 : 1);
    json_object(j, "taskOffset");
    json_string(j, "kind", kinds[p->access == ACCESS_READ ? o->reorder : REORDER_NONE]);
    json_int(j, "requested", constant ? requested : 0);
    if (p->access == ACCESS_READ && o->reorder > REORDER_CONSTANT)
        json_null(j, "effective"); /* every rank has its own, see perRank */
    else
        json_int(j, "effective", p->task_offset);
    json_double(j, "crossNodeFraction", (double)crossing / run->comm.size);
    json_object_end(j);
}

static void json_stonewall(const struct data_run *run, const struct whole *w, struct json *j)
{
    int64_t hits = 0, least = INT64_MAX, most = 0, walled_least = INT64_MAX, walled_most = 0;
    for (int i = 0; i < run->comm.size; i++) {
        const struct rank_record *r = &w->ranks[i];
        hits += r->deadline_hit;
        least = r->operations < least ? r->operations : least;
        most = r->operations > most ? r->operations : most;
        walled_least = r->walled_operations < walled_least ? r->walled_operations : walled_least;
        walled_most = r->walled_operations > walled_most ? r->walled_operations : walled_most;
    }
    json_object(j, "stonewall");
    if (run->o->stonewall > 0)
        json_double(j, "seconds", run->o->stonewall);
    else
        json_null(j, "seconds");
    json_bool(j, "wearOut", run->o->wear_out);
    json_bool(j, "hit", hits > 0);
    json_int(j, "ranksHit", hits);
    json_int(j, "operationsMinAtWall", walled_least);
    json_int(j, "operationsMaxAtWall", walled_most);
    json_int(j, "operationsMin", least);
    json_int(j, "operationsMax", most);
    json_object_end(j);
}

static void json_per_rank(const struct data_run *run, const struct whole *w, struct json *j)
{
    static const char *const names[STAMPS] = {"openStart", "openStop", "transferStart",
                                              "transferStop", "closeStart", "closeStop"};
    json_array(j, "perRank");
    for (int i = 0; i < run->comm.size; i++) {
        const struct rank_record *r = &w->ranks[i];
        char *path = data_path(run->o, (int)r->target);
        json_object(j, NULL);
        json_int(j, "rank", i);
        json_string(j, "host", run->layout.hosts[run->layout.node_of[i]]);
        json_int(j, "target", r->target);
        json_string(j, "path", path);
        json_int(j, "operations", r->operations);
        json_int(j, "bytes", r->bytes);
        for (int s = 0; s < STAMPS; s++)
            json_double(j, names[s], seconds(r->stamp[s]));
        json_double(j, "barrierExit", seconds(r->zero));
        json_double(j, "userSeconds", r->user);
        json_double(j, "systemSeconds", r->system);
        json_object_end(j);
        free(path);
    }
    json_array_end(j);
}

static void json_head(const struct phase *p, struct json *j)
{
    const struct data_options *o = p->run->o;
    json_string(j, "access", p->access == ACCESS_WRITE ? "write" : "read");
    json_int(j, "repetition", p->repetition);
    json_int(j, "phase", p->index);
    json_string(j, "accessHistory", p->history);
    json_bool(j, "random", p->random);
    json_double(j, "blockKiB", (double)o->block / 1024);
    json_double(j, "xferKiB", (double)o->transfer / 1024);
}

/* Everything about a finished phase; returns the row for the summary. */
static struct row json_result(const struct phase *p, const struct whole *w, struct json *j)
{
    const struct data_run *run = p->run;
    const struct data_options *o = run->o;
    const int tasks = run->comm.size;
    int64_t bytes = 0, operations = 0, shorts = 0, mismatches = 0, file_size = 0, voluntary = 0, involuntary = 0;
    double user = 0, system = 0, latency = INFINITY;
    for (int i = 0; i < tasks; i++) {
        const struct rank_record *r = &w->ranks[i];
        bytes += r->bytes;
        operations += r->operations;
        shorts += r->short_transfers;
        mismatches += r->mismatches;
        file_size += r->file_size;
        user += r->user;
        system += r->system;
        voluntary += r->voluntary;
        involuntary += r->involuntary;
        if (r->operations)
            latency = fmin(latency, seconds(r->stamp[MOVE_STOP] - r->stamp[MOVE_START]) / (double)r->operations);
    }
    const double *s = w->stamp;
    double moving = s[MOVE_STOP] - s[MOVE_START], total = s[CLOSE_STOP] - s[OPEN_START];
    double transfers = (double)bytes / (double)o->transfer;

    json_object(j, NULL);
    json_head(p, j);
    json_double(j, "bwMiB", (double)bytes / total / 1048576);
    json_double(j, "iops", transfers / moving);
    json_double(j, "latency", latency);
    json_double(j, "openTime", s[OPEN_STOP] - s[OPEN_START]);
    json_double(j, "wrRdTime", moving);
    json_double(j, "closeTime", s[CLOSE_STOP] - s[CLOSE_START]);
    json_double(j, "totalTime", total);
    json_line(j);
    json_double(j, "began", p->record.began);
    json_int(j, "bytesMoved", bytes);
    json_int(j, "bytesExpected", data_bytes_per_task(o) * tasks);
    json_int(j, "operations", operations);
    json_int(j, "shortTransfers", shorts);
    json_int(j, "fileBytesAfter", file_size);
    if (o->check_read || (o->check_write && p->access == ACCESS_WRITE))
        json_int(j, "verifyErrors", mismatches);
    else
        json_null(j, "verifyErrors");
    if (p->order_seed < 0)
        json_null(j, "orderSeed");
    else
        json_int(j, "orderSeed", run->order_seed);
    json_line(j);
    document_histogram(j, "transferLatency", &p->transfer.latency);
    document_histogram(j, "openLatency", &p->open_latency);
    document_histogram(j, "closeLatency", &p->close_latency);
    document_histogram(j, "fsyncLatency", &p->transfer.sync_latency);
    json_line(j);
    timeseries_json(&p->transfer.series, j);
    json_line(j);
    if (p->access == ACCESS_READ)
        json_residency(run, w, j);
    else
        json_null(j, "residency");
    if (p->behind)
        behind_json(p->behind, j);
    else
        json_null(j, "behind");
    json_task_offset(p, j);
    json_stonewall(run, w, j);
    json_object(j, "cpu");
    json_double(j, "userSeconds", user);
    json_double(j, "systemSeconds", system);
    json_int(j, "voluntarySwitches", voluntary);
    json_int(j, "involuntarySwitches", involuntary);
    json_object_end(j);
    layout_json(&run->layout, run->comm.size, j);
    if (o->per_rank) {
        json_line(j);
        json_per_rank(run, w, j);
    }
    json_object_end(j);
    return (struct row){.series = p->index, .bytes = (double)bytes, .operations = transfers, .seconds = total};
}

static void json_prepared(const struct phase *p, const struct whole *w, struct json *j)
{
    json_object(j, NULL);
    json_head(p, j);
    json_bool(j, "prepared", true);
    json_double(j, "began", clock_epoch());
    json_residency(p->run, w, j);
    if (p->behind)
        behind_json(p->behind, j);
    else
        json_null(j, "behind");
    json_task_offset(p, j);
    layout_json(&p->run->layout, p->run->comm.size, j);
    json_object_end(j);
}

static bool gather(struct phase *p, struct whole *w)
{
    const struct comm *c = &p->run->comm;
    size_t tasks = (size_t)c->size;
    memset(w, 0, sizeof *w);
    if (c->rank == 0) {
        w->ranks = calloc(tasks, sizeof *w->ranks);
        w->caches = calloc(tasks, sizeof *w->caches);
        if (!w->ranks || !w->caches)
            failure_note(&p->run->failure, "report", NULL, ENOMEM, NULL);
    }
    if (failure_agree(&p->run->failure, c, "report"))
        return false;
    struct cache_record mine = {.r = p->residency, .measured = p->measured};
    mine.method = !p->residency.method || strcmp(p->residency.method, "none") == 0 ? 0
                  : strcmp(p->residency.method, "mincore") == 0                    ? 1
                                                                                   : 2;
    comm_gather(c, &p->record, sizeof p->record, w->ranks);
    comm_gather(c, &mine, sizeof mine, w->caches);
    return true;
}

/* Renders on rank 0 into the journal. */
static bool deliver(struct phase *p, bool prepared)
{
    struct whole w;
    bool good = gather(p, &w);
    if (good && p->run->comm.rank == 0) {
        char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);
        if (out) {
            struct json j;
            json_start(&j, out);
            if (prepared) {
                json_prepared(p, &w, &j);
            } else {
                common_stamps(p->run, &w);
                board_add(p->run->job->board, json_result(p, &w, &j));
            }
            fclose(out);
            journal_add(p->run->job, text, length);
            free(text);
        }
    }
    free(w.ranks);
    free(w.caches);
    return good;
}

bool result_phase(struct phase *p)
{
    const struct comm *c = &p->run->comm;
    collect_histogram(c, &p->transfer.latency);
    collect_histogram(c, &p->transfer.sync_latency);
    collect_histogram(c, &p->open_latency);
    collect_histogram(c, &p->close_latency);
    collect_timeseries(c, &p->transfer.series);
    return deliver(p, false);
}

bool result_prepared(struct phase *p)
{
    return deliver(p, true);
}
