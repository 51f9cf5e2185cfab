#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "collect.h"
#include "document.h"
#include "json.h"
#include "md_run.h"
#include "pattern.h"

/* What one rank reports of a phase. Moments are monotonic ns. */
struct record {
    int64_t zero, start, stop, after; /* barrier exit, loop, exit from the barrier that follows */
    int64_t items, walled_items, hit, bytes, mismatches;
    double user, system, began;
    int64_t voluntary, involuntary;
};

struct measure {
    struct md_run *run;
    const struct md_phase *phase;
    int64_t iteration;
    int owner;        /* task whose items are worked on */
    int64_t deadline; /* monotonic ns, INT64_MAX for none */
    struct record record;
    struct histogram latency;
    struct timeseries series;
};

/* Names step i of a rotation: every item takes the name of the one before it, by way of a spare name. */
static const char *name_rename(struct md_run *run, const struct measure *m, int64_t tree, int64_t i)
{
    struct namer *n = &run->namer;
    int64_t last = run->per_tree - 1;
    const char *to = i == 0 ? name_item(n, m->iteration, tree, m->owner, m->phase->directory, 0, "-XX")
                            : name_item(n, m->iteration, tree, m->owner, m->phase->directory, i - 1, "");
    strcpy(run->other_name, to);
    bool spare = i == last && i > 0;
    return name_item(n, m->iteration, tree, m->owner, m->phase->directory, spare ? 0 : i, spare ? "-XX" : "");
}

/* Does one operation; false when the loop must end. */
static bool step(struct measure *m, const char *path, int64_t index)
{
    struct md_run *run = m->run;
    const bool check = m->phase->reads && run->o->verify;
    if (m->phase->writes && run->o->write_bytes > 0)
        pattern_fill(run->buffer, run->o->write_bytes, 0, (int64_t)m->owner << 40 | index, run->data_seed);
    if (check)
        pattern_spoil(run->buffer, run->o->read_bytes);
    int64_t moved = run->bytes, start = clock_ns();
    int error = m->phase->operation(run, path);
    int64_t now = clock_ns();
    if (error) {
        failure_note(&run->failure, run->operation, path, error > 0 ? error : 0, "%s",
                     error > 0 ? strerror(error) : "unexpected end of file");
        return false;
    }
    histogram_add(&m->latency, now - start);
    timeseries_add(&m->series, now, run->bytes - moved);
    m->record.items++;
    if (check && !pattern_matches(run->buffer, run->o->read_bytes, 0, (int64_t)m->owner << 40 | index, run->data_seed))
        m->record.mismatches++;
    if (now > m->deadline) {
        m->record.hit = 1;
        return false;
    }
    return !stop_requested();
}

/* The items of all trees, from the first-th item of each. */
static bool over_items(struct measure *m, int64_t first)
{
    struct md_run *run = m->run;
    bool shuffled = m->phase->shuffled && run->shuffled;
    for (int64_t tree = 0; tree < run->o->trees; tree++)
        for (int64_t i = first; i < (shuffled ? run->o->per_tree : run->per_tree); i++) {
            int64_t index = shuffled ? run->shuffled[i] : i;
            if (index >= run->per_tree)
                continue; /* a stonewall left fewer items than were shuffled */
            const char *path = m->phase->renames
                                   ? name_rename(run, m, tree, i)
                                   : name_item(&run->namer, m->iteration, tree, m->owner, m->phase->directory, index, "");
            if (!step(m, path, index))
                return false;
        }
    return true;
}

/* All items once; with --again whole passes, until the phase has lasted so long on this rank. */
static void go_over_items(struct measure *m)
{
    const double again = m->phase->repeatable ? m->run->o->again : 0;
    const int64_t until = m->record.start + (int64_t)(again * 1e9);
    while (over_items(m, 0) && again > 0 && clock_ns() < until)
        ;
}

/* The directories of the trees: rank 0's business, or with -u each task's own. */
static void over_directories(struct measure *m)
{
    struct md_run *run = m->run;
    const struct md_options *o = run->o;
    if (!o->unique && run->comm.rank != 0)
        return;
    for (int64_t tree = 0; tree < o->trees; tree++)
        for (int64_t i = 0; i < o->directories_in_tree; i++) {
            int64_t d = m->phase->backwards ? o->directories_in_tree - 1 - i : i;
            if (!step(m, name_directory(&run->namer, m->iteration, tree, run->comm.rank, d), d))
                return;
        }
}

/* File creation with a stonewall: everybody goes on to what the fastest had done. Then that is the number of items. */
static void wear_out(struct measure *m)
{
    struct md_run *run = m->run;
    m->record.walled_items = m->record.items;
    if (m->deadline == INT64_MAX)
        return;
    int64_t most = m->record.items, all = run->per_tree;
    comm_reduce_int(&run->comm, &most, 1, REDUCE_MAX);
    m->deadline = INT64_MAX;
    run->per_tree = most;
    if (!run->failure.set && most < all)
        over_items(m, m->record.items);
}

static double timeval_seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void timed(struct measure *m)
{
    struct md_run *run = m->run;
    struct record *r = &m->record;
    struct rusage before, after;
    comm_barrier(&run->comm);
    r->zero = clock_ns();
    r->began = clock_epoch();
    timeseries_start(&m->series, (int64_t)(run->o->series_interval * 1e9), r->zero);
    getrusage(RUSAGE_SELF, &before);
    r->start = clock_ns();
    m->deadline = m->phase->writes && run->o->stonewall > 0 ? r->start + (int64_t)(run->o->stonewall * 1e9) : INT64_MAX;
    if (m->phase->tree)
        over_directories(m);
    else
        go_over_items(m);
    wear_out(m);
    r->stop = clock_ns();
    getrusage(RUSAGE_SELF, &after);
    comm_barrier(&run->comm);
    r->after = clock_ns();
    r->bytes = run->bytes;
    r->user = timeval_seconds(after.ru_utime) - timeval_seconds(before.ru_utime);
    r->system = timeval_seconds(after.ru_stime) - timeval_seconds(before.ru_stime);
    r->voluntary = after.ru_nvcsw - before.ru_nvcsw;
    r->involuntary = after.ru_nivcsw - before.ru_nivcsw;
}

/* Earliest start to latest stop, in seconds; nodes are aligned at the barrier, see result.c. */
static double span(const struct md_run *run, const struct record *all)
{
    double start = INFINITY, stop = -INFINITY;
    for (int node = 0; node < run->layout.nodes; node++) {
        int64_t zero = INT64_MAX;
        for (int i = 0; i < run->comm.size; i++)
            if (run->layout.node_of[i] == node && all[i].zero < zero)
                zero = all[i].zero;
        for (int i = 0; i < run->comm.size; i++)
            if (run->layout.node_of[i] == node) {
                start = fmin(start, seconds(all[i].start - zero));
                stop = fmax(stop, seconds(all[i].stop - zero));
            }
    }
    return stop - start;
}

static struct row json_result(const struct measure *m, const struct record *all, struct json *j)
{
    const struct md_run *run = m->run;
    const int tasks = run->comm.size;
    int64_t items = 0, least = INT64_MAX, most = 0, walled_least = INT64_MAX, walled_most = 0, hits = 0, bytes = 0;
    int64_t mismatches = 0, voluntary = 0, involuntary = 0;
    double user = 0, system = 0, longest = 0;
    for (int i = 0; i < tasks; i++) {
        const struct record *r = &all[i];
        items += r->items;
        least = r->items < least ? r->items : least;
        most = r->items > most ? r->items : most;
        walled_least = r->walled_items < walled_least ? r->walled_items : walled_least;
        walled_most = r->walled_items > walled_most ? r->walled_items : walled_most;
        hits += r->hit;
        bytes += r->bytes;
        mismatches += r->mismatches;
        user += r->user;
        system += r->system;
        voluntary += r->voluntary;
        involuntary += r->involuntary;
        longest = fmax(longest, seconds(r->after - r->start));
    }
    double time = span(run, all);
    /* mdtest counts the directories of one tree only, and its own time for rank 0 */
    double mdtest_items = m->phase->tree ? (double)run->o->directories_in_tree : (double)items;

    json_object(j, NULL);
    json_string(j, "key", m->phase->key);
    json_string(j, "name", m->phase->name);
    json_int(j, "iteration", m->iteration);
    json_int(j, "items", items);
    json_int(j, "itemsPerTaskMin", least);
    json_int(j, "itemsPerTaskMax", most);
    json_double(j, "rate", (double)items / time);
    json_double(j, "time", time);
    json_double(j, "mdtestRate", mdtest_items / longest);
    json_double(j, "mdtestTime", longest);
    json_double(j, "began", m->record.began);
    json_int(j, "bytesMoved", bytes);
    if (m->phase->reads && run->o->verify)
        json_int(j, "verifyErrors", mismatches);
    else
        json_null(j, "verifyErrors");
    json_line(j);
    document_histogram(j, "latency", &m->latency);
    json_line(j);
    timeseries_json(&m->series, j);
    json_line(j);
    json_object(j, "stonewall");
    if (m->phase->writes && run->o->stonewall > 0)
        json_double(j, "seconds", run->o->stonewall);
    else
        json_null(j, "seconds");
    json_bool(j, "hit", hits > 0);
    json_int(j, "ranksHit", hits);
    json_int(j, "itemsMinAtWall", walled_least);
    json_int(j, "itemsMaxAtWall", walled_most);
    json_object_end(j);
    json_object(j, "cpu");
    json_double(j, "userSeconds", user);
    json_double(j, "systemSeconds", system);
    json_int(j, "voluntarySwitches", voluntary);
    json_int(j, "involuntarySwitches", involuntary);
    json_object_end(j);
    json_int(j, "stride", run->stride);
    layout_json(&run->layout, tasks, j);
    json_object_end(j);
    return (struct row){.series = (int)(m->phase - md_phases), .bytes = (double)bytes, .operations = (double)items,
                        .seconds = time};
}

static bool deliver(struct measure *m)
{
    struct md_run *run = m->run;
    const struct comm *c = &run->comm;
    struct record *all = c->rank == 0 ? calloc((size_t)c->size, sizeof *all) : NULL;
    if (c->rank == 0 && !all)
        failure_note(&run->failure, "report", NULL, ENOMEM, NULL);
    if (failure_agree(&run->failure, c, "report"))
        return false;
    collect_histogram(c, &m->latency);
    collect_timeseries(c, &m->series);
    comm_gather(c, &m->record, sizeof m->record, all);
    char *text = NULL;
    size_t length = 0;
    FILE *out = all ? open_memstream(&text, &length) : NULL;
    if (out) {
        struct json j;
        json_start(&j, out);
        board_add(run->job->board, json_result(m, all, &j));
        fclose(out);
        journal_add(run->job, text, length);
        free(text);
    }
    free(all);
    return true;
}

bool md_phase_run(struct md_run *run, int phase, int64_t iteration)
{
    const struct md_phase *spec = &md_phases[phase];
    struct measure *m = calloc(1, sizeof *m);
    int64_t missing = !m;
    comm_reduce_int(&run->comm, &missing, 1, REDUCE_MAX);
    if (missing || !m) {
        free(m);
        failure_note(&run->failure, "prepare", NULL, ENOMEM, NULL);
        return !failure_agree(&run->failure, &run->comm, spec->key);
    }
    m->run = run;
    m->phase = spec;
    m->iteration = iteration;
    m->owner = (int)((run->comm.rank + spec->shift * run->stride) % run->comm.size);
    histogram_clear(&m->latency);
    run->bytes = 0;
    timed(m);
    bool good = !failure_agree(&run->failure, &run->comm, spec->key) && deliver(m);
    if (good && m->record.mismatches)
        failure_note(&run->failure, "verify", run->o->directory, 0, "%lld files held wrong data",
                     (long long)m->record.mismatches);
    free(m);
    return good && !failure_agree(&run->failure, &run->comm, spec->key);
}
