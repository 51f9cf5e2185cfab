#include "reasons.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char cv_not_staged[] = "not staged", cv_not_cached[] = "not cached",
           cv_base_fast[]  = "in part: the file's own storage is as fast (HDF5_CACHE_ADAPTIVE)",
           cv_local_full[] = "in part: the node-local storage is full (HDF5_CACHE_STORAGE_SIZE)";

#define MOST 256 /* that are kept */

struct reason {
    char       *path;
    const char *what, *why;
    uint64_t    times;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reason   all[MOST];
static unsigned        count;

void cv_because(const char *path, const char *what, const char *why, bool aloud)
{
    struct reason *at = all;

    pthread_mutex_lock(&lock);
    for (; at < all + count && (at->what != what || at->why != why || strcmp(at->path, path)); at++)
        aloud = aloud && at->why != why;
    if (at < all + count) {
        at->times++;
        aloud = false;
    } else if (count < MOST && (at->path = strdup(path))) {
        at->what = what, at->why = why, at->times = 1;
        count++;
    } else {
        aloud = false;
    }
    pthread_mutex_unlock(&lock);
    if (aloud)
        fprintf(stderr, "cachevol: %s: %s: %s\n", path, what, why);
}

static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    fputc('"', out);
}

void cv_reasons_write(FILE *out)
{
    pthread_mutex_lock(&lock);
    fputc('[', out);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? ", {\"file\": " : "{\"file\": ", out);
        write_text(out, all[i].path);
        fprintf(out, ", \"what\": \"%s\", \"why\": \"%s\", \"times\": %lu}", all[i].what, all[i].why,
                (unsigned long)all[i].times);
    }
    fputc(']', out);
    pthread_mutex_unlock(&lock);
}
