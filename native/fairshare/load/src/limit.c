// fairshare-limit: what this machine's shared memory allows at best. One copy into memory that two
// processes share, a futex to say so, a futex to acknowledge: no protocol, no scheduler, no file.
//
//   fairshare-limit [--size BYTES] [--extent BYTES] [--seconds S]
//
// Transfers go to one place after the other of an extent. One as large as a transfer stays in the processor's
// cache and holds nothing but the last transfer; one as large as a file is what storing the file costs at least.
// Prints one JSON object: seconds for a transfer (10th percentile, median, 90th) and bytes per second.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 2000000 };

struct shared {
    atomic_uint turn;  // 0: the client's, 1: the server's, 2: the end
    char padding[4092];
    char extent[];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pass(struct shared *s, unsigned to) {
    atomic_store(&s->turn, to);
    syscall(SYS_futex, &s->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await(struct shared *s, unsigned while_it_is) {
    while (atomic_load(&s->turn) == while_it_is) {
        struct timespec limit = {.tv_sec = 5};
        if (syscall(SYS_futex, &s->turn, FUTEX_WAIT, while_it_is, &limit, NULL, 0) < 0 && errno == ETIMEDOUT) {
            fprintf(stderr, "fairshare-limit: no answer from the other process\n");
            exit(1);
        }
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static unsigned long long number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end || value == 0 || value > 1ull << 32) {
        fprintf(stderr, "fairshare-limit: %s is not a usable number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    size_t size = 1 << 20, extent = 0;
    double seconds = 1;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--size") == 0)
            size = number(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--extent") == 0)
            extent = number(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else {
            fprintf(stderr, "usage: fairshare-limit [--size BYTES] [--extent BYTES] [--seconds S]\n");
            return 2;
        }
    }
    if (extent < size) extent = size;
    struct shared *s = mmap(NULL, sizeof *s + extent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    // Ten transfers' worth, so that the source is not always in the processor's cache; the same that
    // fairshare-load writes.
    size_t source_size = size * 10 < 10u << 20 ? 10u << 20 : size * 10;
    char *source = malloc(source_size);
    double *times = malloc(MOST * sizeof *times);
    if (s == MAP_FAILED || !source || !times) {
        perror("fairshare-limit");
        return 1;
    }
    memset(source, 1, source_size);
    memset(s->extent, 0, extent);
    pid_t server = fork();
    if (server < 0) {
        perror("fairshare-limit");
        return 1;
    }
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            await(s, 0);
            if (atomic_load(&s->turn) == 2) _exit(0);
            pass(s, 0);
        }
    }
    size_t n = 0;
    double end = now() + seconds;
    for (size_t at = 0, to = 0; n < MOST; n++) {
        double began = now();
        if (began > end) break;
        memcpy(s->extent + to, source + at, size);
        pass(s, 1);
        await(s, 1);
        times[n] = now() - began;
        at = at + 2 * size <= source_size ? at + size : 0;
        to = to + 2 * size <= extent ? to + size : 0;
    }
    pass(s, 2);
    waitpid(server, NULL, 0);
    if (n == 0) return 1;
    qsort(times, n, sizeof *times, ascending);
    printf("{\"size\": %zu, \"transfers\": %zu, \"seconds_p10\": %.9f, \"seconds_p50\": %.9f, "
           "\"seconds_p90\": %.9f, \"bytes_per_second\": %.0f}\n",
           size, n, times[n / 10], times[n / 2], times[n * 9 / 10], (double)size / times[n / 2]);
    return 0;
}
