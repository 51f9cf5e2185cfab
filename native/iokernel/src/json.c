#include "json.h"

#include <math.h>
#include <string.h>

void json_start(struct json *j, FILE *out)
{
    memset(j, 0, sizeof *j);
    j->out = out;
}

/*
 * Length of the well-formed UTF-8 sequence at s, or 0. Overlong forms,
 * surrogates and code points past U+10FFFF are not well-formed (Unicode 3.9,
 * table 3-7).
 */
static int utf8_length(const unsigned char *s)
{
    unsigned char a = s[0], low = 0x80, high = 0xbf;
    int length;
    if (a < 0x80)
        return 1;
    if (a >= 0xc2 && a <= 0xdf)
        length = 2;
    else if (a >= 0xe0 && a <= 0xef)
        length = 3;
    else if (a >= 0xf0 && a <= 0xf4)
        length = 4;
    else
        return 0;
    if (a == 0xe0)
        low = 0xa0;
    else if (a == 0xed)
        high = 0x9f;
    else if (a == 0xf0)
        low = 0x90;
    else if (a == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (int i = 2; i < length; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return length;
}

static void text(FILE *out, const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    fputc('"', out);
    while (*s) {
        int length = utf8_length(s);
        if (length == 0)
            fprintf(out, "\\udc%02x", *s);
        else if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(out, "\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)length, out);
        s += length ? length : 1;
    }
    fputc('"', out);
}

static void member(struct json *j, const char *key)
{
    if (j->filled[j->depth])
        fputc(',', j->out);
    j->filled[j->depth] = true;
    if (j->line)
        fputc('\n', j->out);
    j->line = false;
    if (key) {
        text(j->out, key);
        fputc(':', j->out);
    }
}

static void open_container(struct json *j, const char *key, char mark)
{
    member(j, key);
    fputc(mark, j->out);
    if (j->depth + 1 < (int)(sizeof j->filled / sizeof *j->filled))
        j->depth++;
    j->filled[j->depth] = false;
}

static void close_container(struct json *j, char mark)
{
    fputc(mark, j->out);
    if (j->depth > 0)
        j->depth--;
}

void json_object(struct json *j, const char *key) { open_container(j, key, '{'); }
void json_object_end(struct json *j) { close_container(j, '}'); }
void json_array(struct json *j, const char *key) { open_container(j, key, '['); }
void json_array_end(struct json *j) { close_container(j, ']'); }

void json_string(struct json *j, const char *key, const char *value)
{
    if (!value) {
        json_null(j, key);
        return;
    }
    member(j, key);
    text(j->out, value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
    member(j, key);
    fprintf(j->out, "%lld", (long long)value);
}

void json_double(struct json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    member(j, key);
    fprintf(j->out, "%.17g", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    member(j, key);
    fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
    member(j, key);
    fputs("null", j->out);
}

void json_line(struct json *j)
{
    j->line = true;
}
