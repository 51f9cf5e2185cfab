/* Reading sizes and numbers from the command line. */
#ifndef IOKERNEL_SIZE_H
#define IOKERNEL_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes with an optional binary suffix: k, m, g or t (1k is 1024), any case. */
bool size_parse(const char *text, int64_t *bytes);

/* A whole decimal number between least and most, nothing around it. */
bool integer_parse(const char *text, int64_t least, int64_t most, int64_t *value);

/* A finite decimal number, nothing around it. */
bool number_parse(const char *text, double *value);

#endif
