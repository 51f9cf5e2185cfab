// fairshare-load: a job that does one kind of I/O for a given time, and says what it got when.
//
//   fairshare-load --path DIR --pattern P [--processes N] [--seconds S] [--at TIME] [--interval S]
//                  [--size BYTES] [--transfer BYTES] [--delay S] [--total BYTES]
//
// Patterns (ThemisIO, sections 5.1 and 5.3):
//   cycle       each process writes a file of its own of SIZE bytes, reads it back, and so on
//   write, read the same, in one direction
//   iops-stat   stat of one of 64 files, chosen at random
//   iops-write-read  a file of TRANSFER bytes is made and written, then opened and read, then removed
//
// Only ordinary POSIX calls: whether DIR is an ordinary folder or one that the preload library serves is
// nothing this program knows. All processes begin together at TIME (Unix seconds; default: now). SIGTERM
// ends the time early; with --total a process ends when it has moved so many bytes.
// Prints one JSON object: bytes and operations of all processes in each interval from TIME on, seconds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 20000, STAT_FILES = 64 };

static struct {
    const char *path, *pattern;
    int processes;
    double seconds, at, interval, delay;
    size_t size, transfer;
    uint64_t total;
} o = {.pattern = "cycle", .processes = 1, .seconds = 5, .interval = 0.1, .size = 10u << 20, .transfer = 1u << 20};

// One process's results, in memory shared with the parent.
struct results {
    uint64_t samples, bytes;
    double ended;  // Unix seconds
    float latency[SAMPLES];  // of transfers (or operations), seconds; evenly thinned
    struct {
        uint64_t bytes, operations;
    } interval[];
};

static size_t intervals, results_size;
static struct results *mine;
static double began, worst_end;
static uint64_t thinning = 1, counted;

static double read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds since the epoch by the wall clock at the first call, and evenly from there: a clock that jumps changes no
   duration. Jobs agree on the moment of their start (--at). */
static double now(void) {
    static double epoch;
    const double even = read_clock(CLOCK_MONOTONIC);
    if (epoch == 0)
        epoch = read_clock(CLOCK_REALTIME) - even;
    return epoch + even;
}

static void fail(const char *what) {
    fprintf(stderr, "fairshare-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void note(double from, double to, size_t bytes) {
    mine->bytes += bytes;
    mine->ended = to;
    size_t at = to > began ? (size_t)((to - began) / o.interval) : 0;
    if (at < intervals) {
        mine->interval[at].bytes += bytes;
        mine->interval[at].operations++;
    }
    if (counted++ % thinning) return;
    if (mine->samples == SAMPLES) {  // keep every second one from now on
        for (size_t i = 0; i < SAMPLES / 2; i++) mine->latency[i] = mine->latency[2 * i];
        mine->samples = SAMPLES / 2;
        thinning *= 2;
    }
    mine->latency[mine->samples++] = (float)(to - from);
}

static double clock_now;

static volatile sig_atomic_t *stop;  // shared by all processes; set by the parent

static void on_terminate(int signal) {
    (void)signal;
    *stop = 1;
}

static int over(void) { return clock_now >= worst_end || *stop || (o.total && mine->bytes >= o.total); }

static void transfer(int fd, char *buffer, size_t size, off_t offset, int write_it) {
    double from = clock_now;
    size_t done = 0;
    while (done < size) {
        ssize_t n = write_it ? pwrite(fd, buffer + done, size - done, offset + (off_t)done)
                             : pread(fd, buffer + done, size - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(write_it ? "write" : "read");
        if (n == 0) {
            fprintf(stderr, "fairshare-load: the file ended early\n");
            exit(1);
        }
        done += (size_t)n;
    }
    clock_now = now();
    note(from, clock_now, size);
    if (o.delay > 0) {
        nanosleep(&(struct timespec){(time_t)o.delay, (long)((o.delay - (double)(time_t)o.delay) * 1e9)}, NULL);
        clock_now = now();
    }
}

static void cycle(int rank, int writes, int reads) {
    char name[4096];
    snprintf(name, sizeof name, "%s/load.%d", o.path, rank);
    int fd = open(name, O_RDWR | O_CREAT, 0666);
    if (fd < 0) fail(name);
    // A buffer as large as the file: what a program writes is rarely in the processor's cache.
    char *buffer = malloc(o.size);
    if (!buffer) fail("memory");
    memset(buffer, 'a' + rank % 26, o.size);
    size_t step = o.transfer < o.size ? o.transfer : o.size;
    // The file is there before the time begins.
    for (size_t at = 0; at + step <= o.size; at += step)
        if (pwrite(fd, buffer + at, step, (off_t)at) != (ssize_t)step) fail(name);
    while (now() < o.at && !*stop) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    clock_now = now();
    while (!over()) {
        for (size_t at = 0; writes && at + step <= o.size && !over(); at += step)
            transfer(fd, buffer + at, step, (off_t)at, 1);
        for (size_t at = 0; reads && at + step <= o.size && !over(); at += step)
            transfer(fd, buffer + at, step, (off_t)at, 0);
    }
    close(fd);
    unlink(name);
}

static void iops_stat(int rank) {
    char name[4096];
    unsigned seed = (unsigned)rank + 1;
    for (int i = 0; i < STAT_FILES; i++) {
        snprintf(name, sizeof name, "%s/stat.%d.%d", o.path, rank, i);
        int fd = open(name, O_WRONLY | O_CREAT, 0666);
        if (fd < 0) fail(name);
        close(fd);
    }
    while (now() < o.at && !*stop) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    for (clock_now = now(); !over();) {
        struct stat st;
        double from = clock_now;
        snprintf(name, sizeof name, "%s/stat.%d.%d", o.path, rank, (int)(rand_r(&seed) % STAT_FILES));
        if (stat(name, &st) < 0) fail(name);
        note(from, clock_now = now(), 0);
    }
    for (int i = 0; i < STAT_FILES; i++) {
        snprintf(name, sizeof name, "%s/stat.%d.%d", o.path, rank, i);
        unlink(name);
    }
}

static void iops_write_read(int rank) {
    char name[4096], *buffer = malloc(o.transfer);
    if (!buffer) fail("memory");
    memset(buffer, 'a', o.transfer);
    snprintf(name, sizeof name, "%s/small.%d", o.path, rank);
    while (now() < o.at && !*stop) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    for (clock_now = now(); !over();)
        for (int reading = 0; reading < 2; reading++) {
            int fd = open(name, reading ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);
            if (fd < 0) fail(name);
            transfer(fd, buffer, o.transfer, 0, !reading);
            close(fd);
            if (reading && unlink(name) < 0) fail(name);
            clock_now = now();
        }
}

static void work(int rank) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_IGN);  // said by the parent's flag
    if (strcmp(o.pattern, "cycle") == 0) cycle(rank, 1, 1);
    if (strcmp(o.pattern, "write") == 0) cycle(rank, 1, 0);
    if (strcmp(o.pattern, "read") == 0) cycle(rank, 0, 1);
    if (strcmp(o.pattern, "iops-stat") == 0) iops_stat(rank);
    if (strcmp(o.pattern, "iops-write-read") == 0) iops_write_read(rank);
    exit(0);
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void print(struct results **all) {
    size_t n = 0;
    uint64_t bytes = 0, operations = 0;
    for (int p = 0; p < o.processes; p++) n += all[p]->samples;
    float *latency = malloc((n ? n : 1) * sizeof *latency);
    if (!latency) fail("memory");
    n = 0;
    printf("{\"pattern\": \"%s\", \"processes\": %d, \"began\": %.6f, \"interval\": %g, \"bytes\": [", o.pattern,
           o.processes, o.at, o.interval);
    for (size_t i = 0; i < intervals; i++) {
        uint64_t sum = 0;
        for (int p = 0; p < o.processes; p++) sum += all[p]->interval[i].bytes;
        printf("%s%llu", i ? ", " : "", (unsigned long long)sum);
        bytes += sum;
    }
    printf("], \"operations\": [");
    for (size_t i = 0; i < intervals; i++) {
        uint64_t sum = 0;
        for (int p = 0; p < o.processes; p++) sum += all[p]->interval[i].operations;
        printf("%s%llu", i ? ", " : "", (unsigned long long)sum);
        operations += sum;
    }
    for (int p = 0; p < o.processes; p++)
        for (size_t i = 0; i < all[p]->samples; i++) latency[n++] = all[p]->latency[i];
    qsort(latency, n, sizeof *latency, ascending);
    printf("], \"total_bytes\": %llu, \"total_operations\": %llu, \"seconds\": %g", (unsigned long long)bytes,
           (unsigned long long)operations, o.seconds);
    double ended = o.at;
    for (int p = 0; p < o.processes; p++)
        if (all[p]->ended > ended) ended = all[p]->ended;
    printf(", \"ended\": %.6f", ended - o.at);  // seconds from TIME to the last process's last transfer
    if (n > 0)
        printf(", \"latency_p10\": %.9f, \"latency_p50\": %.9f, \"latency_p99\": %.9f, \"latency_max\": %.9f",
               (double)latency[n / 10], (double)latency[n / 2], (double)latency[n * 99 / 100],
               (double)latency[n - 1]);
    printf("}\n");
}

static void usage(void) {
    fprintf(stderr, "usage: fairshare-load --path DIR --pattern cycle|write|read|iops-stat|iops-write-read\n"
                    "       [--processes N] [--seconds S] [--at TIME] [--interval S] [--size BYTES]\n"
                    "       [--transfer BYTES] [--delay S] [--total BYTES]\n");
    exit(2);
}

static double positive(const char *name, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0) || value > 1e15) {
        fprintf(stderr, "fairshare-load: %s wants a number above 0, not %s\n", name, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    static const char *const patterns[] = {"cycle", "write", "read", "iops-stat", "iops-write-read"};
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value) usage();
        if (strcmp(name, "--path") == 0) o.path = value;
        else if (strcmp(name, "--pattern") == 0) o.pattern = value;
        else if (strcmp(name, "--processes") == 0) o.processes = (int)positive(name, value);
        else if (strcmp(name, "--seconds") == 0) o.seconds = positive(name, value);
        else if (strcmp(name, "--at") == 0) o.at = positive(name, value);
        else if (strcmp(name, "--interval") == 0) o.interval = positive(name, value);
        else if (strcmp(name, "--size") == 0) o.size = (size_t)positive(name, value);
        else if (strcmp(name, "--transfer") == 0) o.transfer = (size_t)positive(name, value);
        else if (strcmp(name, "--delay") == 0) o.delay = positive(name, value);
        else if (strcmp(name, "--total") == 0) o.total = (uint64_t)positive(name, value);
        else usage();
    }
    int known = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) known |= strcmp(o.pattern, patterns[i]) == 0;
    if (!o.path || !known || o.processes < 1 || o.processes > 4096) usage();
    if (o.at == 0) o.at = now();
    began = o.at;
    worst_end = o.at + o.seconds;
    intervals = (size_t)(o.seconds / o.interval + 0.5);
    if (intervals < 1 || intervals > 1000000) usage();
    results_size = sizeof(struct results) + intervals * sizeof mine->interval[0];
    struct results **all = calloc((size_t)o.processes, sizeof *all);
    if (!all) fail("memory");
    for (int p = 0; p < o.processes; p++) {
        all[p] = mmap(NULL, results_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (all[p] == MAP_FAILED) fail("memory");
    }
    stop = mmap(NULL, sizeof *stop, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stop == MAP_FAILED) fail("memory");
    if (sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_terminate, .sa_flags = SA_RESTART}, NULL) < 0)
        fail("sigaction");
    for (int p = 0; p < o.processes; p++) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            mine = all[p];
            work(p);
        }
    }
    int failed = 0, status;
    for (int p = 0; p < o.processes; p++)
        if (wait(&status) > 0 && status != 0) failed = 1;
    if (failed) return 1;
    print(all);
    return 0;
}
