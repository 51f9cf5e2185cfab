#include "md_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool namer_open(struct namer *n, const struct md_options *o)
{
    /* every level of the tree adds one name of less than 64 bytes */
    size_t room = strlen(o->directory) + ((size_t)o->depth + 4) * 64;
    *n = (struct namer){.o = o, .text = malloc(room), .room = room, .directory = -1};
    return n->text != NULL;
}

void namer_close(struct namer *n)
{
    free(n->text);
    n->text = NULL;
}

__attribute__((format(printf, 3, 4))) static void append(struct namer *n, size_t *length,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(n->text + *length, n->room - *length, format, arguments);
    va_end(arguments);
    *length += (size_t)added;
}

const char *name_test_directory(struct namer *n, int64_t iteration, int64_t tree)
{
    size_t length = 0;
    n->directory = -1; /* the kept directory part is gone */
    append(n, &length, "%s/test-dir.%lld-%lld", n->o->directory, (long long)iteration, (long long)tree);
    return n->text;
}

/* "/mdtest_tree.<d>", with the task's number in between for trees of single tasks */
static void append_level(struct namer *n, size_t *length, int task, int64_t directory)
{
    if (n->o->unique)
        append(n, length, "/mdtest_tree.%d.%lld", task, (long long)directory);
    else
        append(n, length, "/mdtest_tree.%lld", (long long)directory);
}

const char *name_directory(struct namer *n, int64_t iteration, int64_t tree, int task, int64_t directory)
{
    int64_t path[1024];
    int levels = 0;
    name_test_directory(n, iteration, tree);
    size_t length = strlen(n->text);
    for (int64_t d = directory; d > 0; d = (d - 1) / n->o->branches)
        path[levels++] = d;
    append_level(n, &length, task, 0);
    while (levels > 0)
        append_level(n, &length, task, path[--levels]);
    n->iteration = iteration;
    n->tree = tree;
    n->task = task;
    n->directory = directory;
    n->folder_length = length;
    return n->text;
}

const char *name_item(struct namer *n, int64_t iteration, int64_t tree, int task, bool directory, int64_t index,
                      const char *suffix)
{
    const struct md_options *o = n->o;
    int64_t number = index + (o->leaf_only ? o->per_directory * (o->directories_in_tree - o->leaves) : 0);
    int64_t folder = number / o->per_directory;
    if (n->directory != folder || n->tree != tree || n->task != task || n->iteration != iteration)
        name_directory(n, iteration, tree, task, folder);
    size_t length = n->folder_length;
    append(n, &length, "/%s.mdtest.%d.%lld%s", directory ? "dir" : "file", task, (long long)number, suffix);
    return n->text;
}
