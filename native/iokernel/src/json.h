/*
 * A JSON writer. Whatever goes in, what comes out is valid JSON in UTF-8:
 * numbers keep all 17 digits, NaN and infinities become null, and bytes that
 * are not UTF-8 (a path may hold any byte) become the escapes \udc80..\udcff,
 * which Python's "surrogateescape" turns back into the same bytes.
 */
#ifndef IOKERNEL_JSON_H
#define IOKERNEL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool line;       /* break the line before the next member */
    bool filled[16]; /* does the container at this depth hold a member yet? */
};

void json_start(struct json *j, FILE *out);

/* The key is NULL for the outermost value and for members of an array. */
void json_object(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *key, const char *value); /* NULL gives null */
void json_int(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* A line break before the next member: keeps long documents readable. */
void json_line(struct json *j);

#endif
