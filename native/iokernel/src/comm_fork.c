/*
 * Processes of one machine, forked by a parent that takes no part in the
 * measurement: it watches them, cleans up after a failure and writes the
 * report, so a rank that is killed ends in a valid document, not in silence.
 *
 * Collective operations go through shared memory: a slot per rank and a
 * barrier that sleeps on a futex, because ranks may outnumber processors and a
 * spinning rank would take time away from one that has work to do.
 */
#include "comm.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "job.h"

#define SLOT 32768 /* bytes that one rank can pass in one step */
#define SPINS 200  /* looks at the barrier before sleeping */

struct shared {
    _Alignas(64) atomic_uint arrived;
    _Alignas(64) atomic_uint generation;
    _Alignas(64) char slots[];
};

static char *slot(const struct comm *c, int rank)
{
    struct shared *s = c->state;
    return s->slots + (size_t)rank * SLOT;
}

static void fork_barrier(const struct comm *c)
{
    struct shared *s = c->state;
    unsigned generation = atomic_load(&s->generation);
    if (atomic_fetch_add(&s->arrived, 1) + 1 == (unsigned)c->size) {
        atomic_store(&s->arrived, 0);
        atomic_fetch_add(&s->generation, 1);
        syscall(SYS_futex, &s->generation, FUTEX_WAKE, c->size, NULL, NULL, 0);
        return;
    }
    for (int i = 0; i < SPINS; i++)
        if (atomic_load(&s->generation) != generation)
            return;
    while (atomic_load(&s->generation) == generation)
        syscall(SYS_futex, &s->generation, FUTEX_WAIT, generation, NULL, NULL, 0);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

#define REDUCTION(name, type)                                                                          \
    static void name(const struct comm *c, type *values, size_t count, enum reduce how)                \
    {                                                                                                  \
        for (size_t at = 0; at < count; at += SLOT / sizeof(type)) {                                   \
            size_t part = smaller(count - at, SLOT / sizeof(type));                                    \
            memcpy(slot(c, c->rank), values + at, part * sizeof(type));                                \
            fork_barrier(c);                                                                           \
            memcpy(values + at, slot(c, 0), part * sizeof(type));                                      \
            for (int r = 1; r < c->size; r++) {                                                        \
                const type *other = (const void *)slot(c, r);                                          \
                for (size_t i = 0; i < part; i++) {                                                    \
                    type *v = &values[at + i];                                                         \
                    if (how == REDUCE_SUM)                                                             \
                        *v += other[i];                                                                \
                    else if (how == REDUCE_MIN ? other[i] < *v : other[i] > *v)                        \
                        *v = other[i];                                                                 \
                }                                                                                      \
            }                                                                                          \
            fork_barrier(c);                                                                           \
        }                                                                                              \
    }
REDUCTION(fork_reduce_int, int64_t)
REDUCTION(fork_reduce_double, double)

static void fork_gather(const struct comm *c, const void *mine, size_t bytes, void *all)
{
    for (size_t at = 0; at < bytes; at += SLOT) {
        size_t part = smaller(bytes - at, SLOT);
        memcpy(slot(c, c->rank), (const char *)mine + at, part);
        fork_barrier(c);
        if (c->rank == 0)
            for (int r = 0; r < c->size; r++)
                memcpy((char *)all + (size_t)r * bytes + at, slot(c, r), part);
        fork_barrier(c);
    }
}

static void fork_bcast(const struct comm *c, void *data, size_t bytes, int root)
{
    for (size_t at = 0; at < bytes; at += SLOT) {
        size_t part = smaller(bytes - at, SLOT);
        if (c->rank == root)
            memcpy(slot(c, root), (char *)data + at, part);
        fork_barrier(c);
        if (c->rank != root)
            memcpy((char *)data + at, slot(c, root), part);
        fork_barrier(c);
    }
}

static const struct comm_ops fork_ops = {
    .shares_memory = true,
    .barrier = fork_barrier,
    .reduce_int = fork_reduce_int,
    .reduce_double = fork_reduce_double,
    .gather = fork_gather,
    .bcast = fork_bcast,
};

bool comm_start(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return true;
}

void comm_finish(void) {}

int comm_agree(int status)
{
    return status;
}

bool comm_is_mpi(void)
{
    return false;
}

void comm_library(char *text, size_t size)
{
    snprintf(text, size, "%s", "");
}

void *comm_mpi_handle(const struct comm *c)
{
    (void)c;
    return NULL;
}

/* The life of a rank; does not return. */
static void rank_main(struct job *job, struct shared *shared, int rank, pid_t parent, const sigset_t *mask)
{
    /* no rank may outlive a parent that was killed; the second look closes the race before prctl */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILED);
    if (job->own_session)
        setsid();
    sigprocmask(SIG_SETMASK, mask, NULL);

    struct comm c = {.ops = &fork_ops, .rank = rank, .started = rank, .size = job->tasks, .state = shared};
    int status = job->personality->body(job, &c);
    fflush(NULL);
    _exit(status);
}

static void kill_all(const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

/* Notes how a rank ended, unless the ranks have already agreed on a failure. */
static void note_end(struct failure *f, int rank, int status)
{
    if (f->set)
        return;
    if (WIFSIGNALED(status))
        failure_note(f, "run", NULL, 0, "rank %d was killed by signal %d (%s)", rank, WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    else
        failure_note(f, "run", NULL, 0, "rank %d ended early with status %d", rank, WEXITSTATUS(status));
    f->rank = rank;
    gethostname(f->host, sizeof f->host - 1);
}

/* Waits until every rank has ended; EXIT_USAGE when the ranks refused the job, else EXIT_DONE or EXIT_FAILED. */
static int supervise(struct job *job, pid_t *pids, int count, const sigset_t *watched)
{
    struct failure *f = &job->board->failure;
    int running = 0, status_of_run = EXIT_DONE;
    for (int i = 0; i < count; i++)
        running += pids[i] > 0;
    while (running > 0) {
        /* a SIGCHLD may stand for several children: look at all of them each time, and once a second anyway */
        struct timespec second = {.tv_sec = 1};
        siginfo_t info = {0};
        int number = sigtimedwait(watched, &info, &second);
        if (number > 0 && number != SIGCHLD && !f->signal) {
            memset(f, 0, sizeof *f);
            failure_note(f, "stop", NULL, 0, "stopped by signal %d", number);
            f->signal = number;
            gethostname(f->host, sizeof f->host - 1);
            kill_all(pids, count);
        }
        for (int i = 0; i < count; i++) {
            int status;
            if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i])
                continue;
            pids[i] = 0;
            running--;
            if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE)
                continue;
            if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE) {
                status_of_run = EXIT_USAGE;
                continue;
            }
            bool agreed = f->set;
            note_end(f, i, status);
            if (!agreed)
                kill_all(pids, count); /* the others wait for a rank that will never come */
            if (status_of_run == EXIT_DONE)
                status_of_run = EXIT_FAILED;
        }
    }
    return f->set ? EXIT_FAILED : status_of_run;
}

int comm_run(struct job *job, int (*report)(const struct job *job))
{
    job->tasks = job->processes;
    if (job->tasks_wanted > job->processes)
        return usage_error(true, "-N", "%d tasks wanted, but -n starts only %d processes", job->tasks_wanted,
                           job->processes);
    if (job->tasks_wanted > 0)
        job->tasks = job->tasks_wanted;

    size_t shared_size = sizeof(struct shared) + (size_t)job->tasks * SLOT, size = board_size(job, job->tasks);
    struct shared *shared = mmap(NULL, shared_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pids = calloc((size_t)job->tasks, sizeof *pids);
    job->journal = journal_open();
    if (shared == MAP_FAILED || memory == MAP_FAILED || !pids || !job->journal) {
        fprintf(stderr, "iokernel: cannot set up %d processes: %s\n", job->tasks, strerror(errno));
        free(pids);
        return EXIT_FAILED;
    }
    job->board = board_place(memory, job, job->tasks);

    sigset_t watched, before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &watched, &before);

    pid_t parent = getpid();
    fflush(NULL);
    for (int rank = 0; rank < job->tasks; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            rank_main(job, shared, rank, parent, &before);
        if (pids[rank] < 0) {
            failure_note(&job->board->failure, "fork", NULL, errno, NULL);
            job->board->failure.rank = rank;
            pids[rank] = 0;
            kill_all(pids, rank);
            break;
        }
    }
    int status = supervise(job, pids, job->tasks, &watched);
    free(pids);
    sigprocmask(SIG_SETMASK, &before, NULL); /* writing the results may wait for the reader of a pipe */
    if (status == EXIT_USAGE)
        return status;
    if (job->board->failure.set) {
        for (int rank = 0; rank < job->tasks; rank++)
            job->personality->clean(job, rank);
        failure_print(&job->board->failure);
    }
    int written = report(job);
    status = failure_status(&job->board->failure);
    return status == EXIT_DONE ? written : status;
}
