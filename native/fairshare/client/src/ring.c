// Which of several servers has a file: by consistent hashing of the first name of its path, so that a folder
// below the root lies whole on one server (renames within it are the backing file system's own), and a
// server more or less moves only its part.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "client.h"

enum { POINTS = 128 };  // of a server on the ring

struct point {
    uint64_t hash;
    int server;
};

static struct point ring[MOST_SERVERS * POINTS];
static int points;
static pthread_once_t made = PTHREAD_ONCE_INIT;

uint64_t fs_mix(uint64_t h) {
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 33);
}

// FNV-1a, and a last mix so that names that differ in one letter land far apart.
static uint64_t hash(const char *text, size_t length, uint64_t seed) {
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return fs_mix(h);
}

static int ascending(const void *a, const void *b) {
    const struct point *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void make(void) {
    for (int server = 0; server < fs_config.servers; server++)
        for (int n = 0; n < POINTS; n++) {
            const char *name = fs_config.server[server];
            ring[points++] = (struct point){hash(name, strlen(name), (uint64_t)n * 0x9e3779b97f4a7c15u), server};
        }
    qsort(ring, (size_t)points, sizeof *ring, ascending);
}

int fs_server_of(const char *path) {
    if (fs_config.servers == 1) return 0;
    while (*path == '/' || (*path == '.' && (path[1] == '/' || !path[1]))) path++;
    size_t length = strcspn(path, "/");
    if (length == 0) return 0;  // the root: of all, but asked of the first
    pthread_once(&made, make);
    uint64_t h = hash(path, length, 0);
    int low = 0, high = points;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ring[middle].hash < h)
            low = middle + 1;
        else
            high = middle;
    }
    return ring[low % points].server;
}
