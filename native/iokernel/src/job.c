#include "job.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "json.h"

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t board_size(const struct job *job, int tasks)
{
    return rounded(sizeof(struct board)) +
           rounded(sizeof(struct row) * (size_t)job->personality->row_capacity(job)) + rounded((size_t)tasks);
}

struct board *board_place(void *memory, const struct job *job, int tasks)
{
    (void)tasks;
    char *at = memory;
    struct board *board = memory;
    board->row_capacity = job->personality->row_capacity(job);
    at += rounded(sizeof(struct board));
    board->rows = (struct row *)(void *)at;
    at += rounded(sizeof(struct row) * (size_t)board->row_capacity);
    board->marks = (unsigned char *)at;
    board->order_seed = -1;
    return board;
}

void board_add(struct board *board, struct row row)
{
    if (board->row_count < board->row_capacity)
        board->rows[board->row_count++] = row;
}

int board_settle(struct board *board, struct failure *f, const struct comm *c, int status)
{
    failure_agree(f, c, "end");
    if (!f->set)
        return status;
    if (c->rank == 0 || !c->ops->shares_memory)
        board->failure = *f;
    comm_barrier(c); /* nobody leaves before the failure is on the board */
    return failure_status(f);
}

FILE *journal_open(void)
{
#ifdef MFD_CLOEXEC
    int fd = memfd_create("iokernel-journal", MFD_CLOEXEC);
    if (fd >= 0) {
        FILE *file = fdopen(fd, "w+");
        if (file)
            return file;
        close(fd);
    }
#endif
    return tmpfile();
}

void journal_add(const struct job *job, const char *text, size_t length)
{
    if (ftell(job->journal) > 0)
        fputs(",\n", job->journal);
    fwrite(text, 1, length, job->journal);
    if (fflush(job->journal) == 0)
        job->board->journal_bytes = ftell(job->journal);
}

void journal_copy(const struct job *job, struct json *j)
{
    char buffer[1 << 16];
    int64_t left = job->board->journal_bytes;
    rewind(job->journal);
    while (left > 0) {
        size_t part = left < (int64_t)sizeof buffer ? (size_t)left : sizeof buffer;
        size_t got = fread(buffer, 1, part, job->journal);
        if (got == 0)
            break;
        fwrite(buffer, 1, got, j->out);
        left -= (int64_t)got;
    }
}
