/* The document that a run leaves behind: IOR's outline, made valid, plus what IOR does not record. */
#ifndef IOKERNEL_DOCUMENT_H
#define IOKERNEL_DOCUMENT_H

#include <stdbool.h>

struct job;
struct json;
struct histogram;

/*
 * Writes the whole document to the summary file (under a temporary name first,
 * so that a reader never sees half of one) or to standard output. EXIT_DONE,
 * or EXIT_FAILED after a message.
 */
int document_write(const struct job *job);

/* Complains, as a usage error, when the summary file could not be created; EXIT_DONE or EXIT_USAGE. */
int document_check(const struct job *job, int report);

/* Prints what this program can do on this machine, as one JSON object. */
void document_capabilities(const char *hdf5);

/* Seconds: count, min, mean, percentiles, max and the buckets that hold anything. */
void document_histogram(struct json *j, const char *key, const struct histogram *h);

/* The means and extremes of the rows of one series, under IOR's names. */
void document_summary(const struct job *job, struct json *j, int series);

/* Operations per second of the rows of one series: rateMax, rateMin, rateMean, rateStd, and MeanTime. */
void document_rates(const struct job *job, struct json *j, int series);

/* Opens "tests" and its one test: who, when, and the path under test. */
void document_test(const struct job *job, struct json *j, const char *path);

/* Its "Results" (the journal) and its end. */
void document_results(const struct job *job, struct json *j);

/* Whether the summary has a line for this series: some phase of it was measured. */
bool document_measured(const struct job *job, int series);

#endif
