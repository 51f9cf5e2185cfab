#include "document.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "clock.h"
#include "hdf5_library.h"
#include "histogram.h"
#include "job.h"
#include "json.h"
#include "residency.h"
#include "version.h"

static void json_time(struct json *j, const char *key, double epoch)
{
    char text[64];
    time_t whole = (time_t)epoch;
    struct tm parts;
    localtime_r(&whole, &parts);
    strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &parts);
    json_string(j, key, text);
}

/* The arguments joined by blanks, as IOR has it; "argv" beside it keeps them apart. */
static void json_command(const struct job *job, struct json *j)
{
    size_t length = 1;
    for (int i = 0; i < job->argc; i++)
        length += strlen(job->argv[i]) + 1;
    char *line = calloc(length, 1), *at = line;
    for (int i = 0; line && i < job->argc; i++) {
        size_t size = strlen(job->argv[i]);
        if (i)
            *at++ = ' ';
        memcpy(at, job->argv[i], size);
        at += size;
    }
    json_string(j, "Command line", line);
    free(line);
    json_array(j, "argv");
    for (int i = 0; i < job->argc; i++)
        json_string(j, NULL, job->argv[i]);
    json_array_end(j);
}

static void capabilities(struct json *j)
{
    char library[512];
    struct rlimit files = {0};
    comm_library(library, sizeof library);
    getrlimit(RLIMIT_NOFILE, &files);
    json_string(j, "version", IOKERNEL_VERSION);
    json_bool(j, "mpi", comm_is_mpi());
    json_string(j, "mpiLibrary", library[0] ? library : NULL);
    json_bool(j, "io_uring", backend_uring_available());
    json_bool(j, "cachestat", residency_has_cachestat());
    json_array(j, "apis");
    for (const struct backend *const *b = backends; *b; b++)
        if (!(*b)->hidden)
            json_string(j, NULL, (*b)->name);
    json_array_end(j);
    const struct hdf5 *h5 = hdf5_loaded();
    json_string(j, "hdf5", h5 ? h5->version : NULL);
    json_bool(j, "hdf5Parallel", h5 && h5->parallel);
    json_int(j, "maxOpenFiles", files.rlim_cur == RLIM_INFINITY ? INT64_MAX : (int64_t)files.rlim_cur);
}

void document_capabilities(const char *hdf5)
{
    struct json j;
    char problem[512] = "";
    if (hdf5)
        hdf5_load(hdf5, problem, sizeof problem);
    json_start(&j, stdout);
    json_object(&j, NULL);
    capabilities(&j);
    json_string(&j, "hdf5Problem", problem[0] ? problem : NULL);
    json_object_end(&j);
    putchar('\n');
}

static void document(const struct job *job, FILE *out)
{
    struct utsname machine = {0};
    struct json j;
    char text[sizeof machine.sysname + sizeof machine.nodename + 2];
    uname(&machine);
    snprintf(text, sizeof text, "%s %s", machine.sysname, machine.nodename);
    json_start(&j, out);
    json_object(&j, NULL);
    json_string(&j, "engine", "iokernel");
    json_string(&j, "Version", IOKERNEL_VERSION);
    json_time(&j, "Began", job->began);
    json_line(&j);
    json_command(job, &j);
    json_line(&j);
    json_string(&j, "Machine", text);
    json_string(&j, "kernel", machine.release);
    json_string(&j, "architecture", machine.machine);
    json_string(&j, "personality", job->personality->name ? job->personality->name : "data");
    json_object(&j, "capabilities");
    capabilities(&j);
    json_object_end(&j);
    json_line(&j);
    json_string(&j, "status", job->board->failure.set ? "failed" : "ok");
    failure_json(&job->board->failure, &j, "error");
    json_bool(&j, "deadlineReached", job->board->deadline_reached);
    json_double(&j, "began", job->began);
    json_double(&j, "finished", clock_epoch());
    json_line(&j);
    job->personality->report(job, &j);
    json_line(&j);
    json_time(&j, "Finished", clock_epoch());
    json_object_end(&j);
    fputc('\n', out);
}

/*
 * Where the summary goes. A regular file appears complete or not at all: a draft beside it takes its place. A
 * link is followed, so that its target changes and not the link. A device or a pipe must stay what it is, so
 * it is opened and written.
 */
struct destination {
    char *path;  /* what is created or opened */
    char *final; /* the name that a draft is given at the end; NULL for what is written in place */
};

static void destination_free(struct destination *d)
{
    free(d->path);
    free(d->final);
}

static bool destination_of(const char *path, struct destination *d)
{
    struct stat st;
    *d = (struct destination){0};
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        d->path = strdup(path);
        return d->path != NULL;
    }
    char *target = realpath(path, NULL);
    bool dangling = !target && lstat(path, &st) == 0;
    d->final = target ? target : dangling ? NULL : strdup(path);
    size_t size = strlen(d->final ? d->final : path) + 32;
    d->path = malloc(size);
    if (d->path && d->final)
        snprintf(d->path, size, "%s.%ld.tmp", d->final, (long)getpid());
    else if (d->path)
        strcpy(d->path, path);
    return d->path && (d->final || dangling);
}

/* A pipe is opened when its reader is there, and the user learns what is waited for. */
static FILE *destination_open(const struct destination *d)
{
    if (!d->final) {
        int fd = open(d->path, O_WRONLY | O_NONBLOCK);
        if (fd >= 0)
            close(fd);
        else if (errno == ENXIO)
            fprintf(stderr, "iokernel: waiting for somebody who reads the results from %s\n", d->path);
    }
    return fopen(d->path, "w");
}

int document_write(const struct job *job)
{
    if (!job->summary_file) {
        document(job, stdout);
        if (fflush(stdout) == 0 && !ferror(stdout))
            return EXIT_DONE;
        fprintf(stderr, "iokernel: cannot write the results to standard output: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    struct destination to;
    FILE *out = destination_of(job->summary_file, &to) ? destination_open(&to) : NULL;
    int error = out ? 0 : errno;
    if (out) {
        document(job, out);
        bool good = fflush(out) == 0 && !ferror(out) && (fsync(fileno(out)) == 0 || !to.final);
        if (!good)
            error = errno ? errno : EIO;
        if (fclose(out) != 0 && !error)
            error = errno;
        if (to.final && !error && rename(to.path, to.final) != 0)
            error = errno;
        if (to.final && error)
            unlink(to.path);
    }
    destination_free(&to);
    if (error)
        usage_error(true, job->summary_file, "cannot write the results: %s", strerror(error));
    return error ? EXIT_FAILED : EXIT_DONE;
}

int document_check(const struct job *job, int report)
{
    if (!job->summary_file) {
        int flags = fcntl(STDOUT_FILENO, F_GETFL);
        if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
            return EXIT_DONE;
        return usage_error(report, "summaryFile", "standard output is closed: say where the results go");
    }
    struct destination to;
    struct stat st;
    bool good = destination_of(job->summary_file, &to);
    if (good && to.final) {
        FILE *out = fopen(to.path, "w");
        good = out != NULL;
        if (out) {
            fclose(out);
            unlink(to.path);
        }
    } else if (good && stat(to.path, &st) == 0) { /* opening a pipe would wait for its reader */
        good = !S_ISDIR(st.st_mode) && access(to.path, W_OK) == 0;
        if (S_ISDIR(st.st_mode))
            errno = EISDIR;
    }
    int error = errno;
    destination_free(&to);
    if (good)
        return EXIT_DONE;
    return usage_error(report, "summaryFile", "%s cannot be created: %s", job->summary_file, strerror(error));
}

void document_histogram(struct json *j, const char *key, const struct histogram *h)
{
    bool any = h->count > 0;
    json_object(j, key);
    json_string(j, "unit", "s");
    json_int(j, "count", h->count);
    json_double(j, "min", any ? seconds(h->min) : (double)NAN);
    json_double(j, "mean", any ? (double)h->sum / (double)h->count / 1e9 : (double)NAN);
    json_double(j, "p50", histogram_percentile(h, 0.5) / 1e9);
    json_double(j, "p90", histogram_percentile(h, 0.9) / 1e9);
    json_double(j, "p99", histogram_percentile(h, 0.99) / 1e9);
    json_double(j, "p999", histogram_percentile(h, 0.999) / 1e9);
    json_double(j, "max", any ? seconds(h->max) : (double)NAN);
    json_array(j, "buckets");
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        if (h->bucket[i]) {
            json_array(j, NULL);
            json_double(j, NULL, (double)histogram_lower(i) / 1e9);
            json_double(j, NULL, (double)histogram_lower(i + 1) / 1e9);
            json_int(j, NULL, h->bucket[i]);
            json_array_end(j);
        }
    json_array_end(j);
    json_object_end(j);
}

struct spread {
    double min, max, mean, deviation;
    int count;
};

/* IOR's statistics: arithmetic mean and population standard deviation over the repetitions. */
static struct spread spread_of(const struct board *b, int series, double (*value)(const struct row *))
{
    struct spread s = {.min = INFINITY, .max = -INFINITY};
    double sum = 0, squares = 0;
    for (int i = 0; i < b->row_count; i++)
        if (b->rows[i].series == series) {
            double v = value(&b->rows[i]);
            s.count++;
            sum += v;
            s.min = fmin(s.min, v);
            s.max = fmax(s.max, v);
        }
    s.mean = sum / s.count;
    for (int i = 0; i < b->row_count; i++)
        if (b->rows[i].series == series) {
            double v = value(&b->rows[i]) - s.mean;
            squares += v * v;
        }
    s.deviation = sqrt(squares / s.count);
    return s;
}

static double mebibytes_per_second(const struct row *r) { return r->bytes / r->seconds / 1048576.0; }
static double operations_per_second(const struct row *r) { return r->operations / r->seconds; }
static double duration(const struct row *r) { return r->seconds; }
static double mebibytes(const struct row *r) { return r->bytes / 1048576.0; }

void document_summary(const struct job *job, struct json *j, int series)
{
    struct spread bandwidth = spread_of(job->board, series, mebibytes_per_second);
    struct spread rate = spread_of(job->board, series, operations_per_second);
    json_int(j, "measured", bandwidth.count);
    json_double(j, "bwMaxMIB", bandwidth.max);
    json_double(j, "bwMinMIB", bandwidth.min);
    json_double(j, "bwMeanMIB", bandwidth.mean);
    json_double(j, "bwStdMIB", bandwidth.deviation);
    json_double(j, "OPsMax", rate.max);
    json_double(j, "OPsMin", rate.min);
    json_double(j, "OPsMean", rate.mean);
    json_double(j, "OPsSD", rate.deviation);
    json_double(j, "MeanTime", spread_of(job->board, series, duration).mean);
    json_double(j, "xsizeMiB", spread_of(job->board, series, mebibytes).mean);
}

void document_rates(const struct job *job, struct json *j, int series)
{
    struct spread rate = spread_of(job->board, series, operations_per_second);
    json_int(j, "measured", rate.count);
    json_double(j, "rateMax", rate.max);
    json_double(j, "rateMin", rate.min);
    json_double(j, "rateMean", rate.mean);
    json_double(j, "rateStd", rate.deviation);
    json_double(j, "MeanTime", spread_of(job->board, series, duration).mean);
}

void document_test(const struct job *job, struct json *j, const char *path)
{
    char start[64];
    time_t began = (time_t)job->began;
    struct tm parts;
    localtime_r(&began, &parts);
    strftime(start, sizeof start, "%a %b %e %H:%M:%S %Y", &parts);
    json_array(j, "tests");
    json_object(j, NULL);
    json_int(j, "TestID", 0);
    json_string(j, "StartTime", start);
    json_string(j, "Path", path);
    json_line(j);
}

void document_results(const struct job *job, struct json *j)
{
    json_array(j, "Results");
    journal_copy(job, j);
    json_array_end(j);
    json_object_end(j);
    json_array_end(j);
    json_line(j);
}

bool document_measured(const struct job *job, int series)
{
    for (int r = 0; r < job->board->row_count; r++)
        if (job->board->rows[r].series == series)
            return true;
    return false;
}
