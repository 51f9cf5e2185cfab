#include "recipe.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 100000000u

struct reader {
    FILE *file;
    const char *path;
    char *line;
    size_t room;
    unsigned long number;
};

static bool wrong(const struct reader *r, const char *what)
{
    fprintf(stderr, "tiercel-replay: %s:%lu: %s\n", r->path, r->number, what);
    return false;
}

static bool next(struct reader *r)
{
    r->number++;
    ssize_t length = getline(&r->line, &r->room, r->file);
    if (length <= 0)
        return wrong(r, "ends before it is complete");
    if (r->line[length - 1] != '\n')
        return wrong(r, "cut off");
    r->line[length - 1] = '\0';
    return true;
}

static int hex(int c)
{
    if (isdigit(c))
        return c - '0';
    c = tolower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX; a path must stay below its root, so no part of it may be "..". */
static char *decoded(const char *text)
{
    char *path = malloc(strlen(text) + 1), *out = path;
    if (path == NULL)
        return NULL;
    for (; *text != '\0'; text++) {
        if (*text == '%') {
            int high = hex((unsigned char)text[1]), low = high < 0 ? -1 : hex((unsigned char)text[2]);
            if (low < 0 || (high == 0 && low == 0)) {
                free(path);
                return NULL;
            }
            *out++ = (char)(high * 16 + low);
            text += 2;
        } else {
            *out++ = *text;
        }
    }
    *out = '\0';
    bool bad = path[0] == '\0' || path[0] == '/';
    for (const char *part = path; !bad && part != NULL;) {
        const char *end = strchr(part, '/');
        size_t length = end ? (size_t)(end - part) : strlen(part);
        bad = length == 2 && part[0] == '.' && part[1] == '.';
        part = end ? end + 1 : NULL;
    }
    if (bad) {
        free(path);
        return NULL;
    }
    return path;
}

static bool read_file(struct reader *r, struct recipe *recipe, struct file *file)
{
    int at = 0;
    char flags[8] = "";
    if (!next(r))
        return false;
    if (sscanf(r->line, "f %" SCNu32 " %" SCNd64 " %7s %n", &file->root, &file->size, flags, &at) != 3 || at == 0
        || file->size < 0 || file->root > 1000 || strspn(flags, "-bden") != strlen(flags))
        return wrong(r, "is no file: f ROOT SIZE FLAGS PATH");
    file->buffered = strchr(flags, 'b') != NULL;
    file->folder = strchr(flags, 'd') != NULL;
    file->existed = strchr(flags, 'e') != NULL || file->size > 0;
    file->made_folder = strchr(flags, 'n') != NULL;
    file->path = decoded(r->line + at);
    if (file->path == NULL)
        return wrong(r, "has a path that is empty, absolute, or leads out of its root");
    if (file->root >= recipe->root_count)
        recipe->root_count = file->root + 1;
    return true;
}

static bool read_waits(struct reader *r, struct recipe *recipe, uint32_t count, uint32_t *used, uint32_t capacity)
{
    if (count > capacity - *used)
        return wrong(r, "has more waits than announced");
    for (uint32_t i = 0; i < count; i++) {
        struct wait *wait = &recipe->waits[(*used)++];
        if (!next(r))
            return false;
        if (sscanf(r->line, "w %" SCNu32 " %" SCNu32, &wait->stream, &wait->count) != 2
            || wait->stream >= recipe->stream_count)
            return wrong(r, "is no wait: w STREAM COUNT");
    }
    return true;
}

static bool read_stream(struct reader *r, struct recipe *recipe, struct stream *stream, uint32_t *operations, uint32_t *waits)
{
    if (!next(r))
        return false;
    if (sscanf(r->line, "s %" SCNu32 " %" SCNu32, &stream->count, &stream->wait_count) != 2
        || stream->count > recipe->operation_count - *operations)
        return wrong(r, "is no stream: s OPERATIONS WAITS");
    stream->first = *operations;
    stream->wait_first = *waits;
    if (!read_waits(r, recipe, stream->wait_count, waits, recipe->wait_count))
        return false;
    for (uint32_t i = 0; i < stream->count; i++) {
        struct operation *o = &recipe->operations[(*operations)++];
        if (!next(r))
            return false;
        if (sscanf(r->line, "o %c %" SCNu32 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNu32, &o->kind, &o->file, &o->offset,
                   &o->size, &o->gap, &o->wait_count) != 6
            || strchr("OCRWSDLTUNMXGAKYEHVPQ", o->kind) == NULL || o->file >= recipe->file_count || o->offset < 0 || o->size < 0
            || o->gap < 0)
            return wrong(r, "is no operation: o KIND FILE OFFSET SIZE GAP WAITS");
        if ((o->kind == KIND_RENAME || o->kind == KIND_LINK) && o->offset > recipe->file_count)
            return wrong(r, "names a file that is not there");
        o->wait_first = *waits;
        if (!read_waits(r, recipe, o->wait_count, waits, recipe->wait_count))
            return false;
    }
    return true;
}

bool recipe_read(struct recipe *recipe, const char *path)
{
    struct reader r = {.path = path};
    memset(recipe, 0, sizeof *recipe);
    r.file = fopen(path, "r");
    if (r.file == NULL) {
        fprintf(stderr, "tiercel-replay: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool good = next(&r) && (strcmp(r.line, "tiercel-replay 2") == 0 || wrong(&r, "is not a recipe of version 2")) && next(&r);
    if (good && (sscanf(r.line, "files %" SCNu32 " streams %" SCNu32 " operations %" SCNu32 " waits %" SCNu32, &recipe->file_count,
                        &recipe->stream_count, &recipe->operation_count, &recipe->wait_count) != 4
                 || recipe->file_count > MOST || recipe->stream_count > 65536 || recipe->operation_count > MOST
                 || recipe->wait_count > MOST))
        good = wrong(&r, "does not say how many files, streams, operations and waits follow");
    if (good) {
        recipe->files = calloc(recipe->file_count + 1u, sizeof *recipe->files);
        recipe->streams = calloc(recipe->stream_count + 1u, sizeof *recipe->streams);
        recipe->operations = calloc(recipe->operation_count + 1u, sizeof *recipe->operations);
        recipe->waits = calloc(recipe->wait_count + 1u, sizeof *recipe->waits);
        if (!recipe->files || !recipe->streams || !recipe->operations || !recipe->waits)
            good = wrong(&r, "is too large for memory");
    }
    for (uint32_t i = 0; good && i < recipe->file_count; i++)
        good = read_file(&r, recipe, &recipe->files[i]);
    uint32_t operations = 0, waits = 0;
    for (uint32_t i = 0; good && i < recipe->stream_count; i++)
        good = read_stream(&r, recipe, &recipe->streams[i], &operations, &waits);
    free(r.line);
    fclose(r.file);
    return good;
}
