#include "document.h"
#include "json.h"
#include "md_run.h"

static void json_parameters(const struct job *job, struct json *j)
{
    const struct md_options *o = job->options;
    const struct board *b = job->board;
    json_object(j, "Parameters");
    json_string(j, "api", "POSIX");
    json_string(j, "directory", o->directory);
    json_int(j, "items", o->per_tree * o->trees);
    json_int(j, "itemsRequested", o->items_wanted);
    json_int(j, "itemsPerDirectory", o->per_directory);
    json_int(j, "branches", o->branches);
    json_int(j, "depth", o->depth);
    json_int(j, "directoriesInTree", o->directories_in_tree);
    json_int(j, "trees", o->trees);
    json_bool(j, "leafOnly", o->leaf_only);
    json_bool(j, "uniqueDir", o->unique);
    json_int(j, "writeBytes", o->write_bytes);
    json_int(j, "readBytes", o->read_bytes);
    json_bool(j, "fsync", o->sync);
    json_bool(j, "verifyRead", o->verify);
    json_int(j, "dataSeed", b->data_seed);
    json_int(j, "iterations", o->iterations);
    json_int(j, "stride", o->stride);
    json_int(j, "preDelay", o->delay);
    json_bool(j, "random", o->random);
    if (b->order_seed < 0)
        json_null(j, "randomSeed");
    else
        json_int(j, "randomSeed", b->order_seed);
    json_double(j, "deadlineForStonewall", o->stonewall);
    json_double(j, "timeseriesInterval", o->series_interval);
    json_int(j, "numTasks", job->tasks);
    json_int(j, "nodes", b->nodes);
    json_int(j, "tasksPerNode", b->tasks_on_node0);
    json_string(j, "launcher", comm_is_mpi() ? "mpi" : "fork");
    json_object_end(j);
}

void md_report(const struct job *job, struct json *j)
{
    const struct md_options *o = job->options;
    document_test(job, j, o->directory);
    json_parameters(job, j);
    json_object(j, "Options");
    json_object_end(j);
    json_line(j);
    document_results(job, j);
    json_array(j, "summary");
    for (int phase = 0; phase < MD_PHASES; phase++) {
        if (!document_measured(job, phase))
            continue;
        json_object(j, NULL);
        json_string(j, "key", md_phases[phase].key);
        json_string(j, "operation", md_phases[phase].name);
        json_int(j, "numTasks", job->tasks);
        json_int(j, "iterations", o->iterations);
        document_rates(job, j, phase);
        json_object_end(j);
    }
    json_array_end(j);
}
