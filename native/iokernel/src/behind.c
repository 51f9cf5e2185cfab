#include "behind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

/* splitmix64: the C library's rand is IOR's order here */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Nanoseconds of one read; -1 with errno. */
static int64_t touch(int fd, void *page, int64_t at)
{
    int64_t before = clock_ns();
    ssize_t got = pread(fd, page, BEHIND_PAGE, at);
    int64_t after = clock_ns();
    if (got == BEHIND_PAGE)
        return after - before;
    if (got >= 0)
        errno = ENODATA; /* shorter than planned: a stonewall ended the write */
    return -1;
}

static int touch_twice(const struct data_options *o, int task, int64_t at, void *page, struct behind *b)
{
    char *path = data_path(o, task);
    int fd = path ? open(path, O_RDONLY | O_DIRECT | O_CLOEXEC) : -1, error = path ? 0 : ENOMEM;
    if (fd >= 0) {
        int64_t first = touch(fd, page, at), second = first < 0 ? -1 : touch(fd, page, at);
        if (second >= 0) {
            b->first[b->count] = first;
            b->second[b->count++] = second;
        } else {
            error = errno;
        }
        close(fd);
    } else if (path) {
        error = errno;
    }
    free(path);
    return error;
}

void behind_touch(const struct data_run *run, struct behind *b)
{
    const struct data_options *o = run->o;
    const int64_t tasks = run->comm.size, file = data_bytes_per_task(o) * (o->file_per_process ? 1 : tasks);
    const int64_t files = o->file_per_process ? tasks : 1;
    int64_t pages = file / BEHIND_PAGE * files, wanted = file * files / BEHIND_STRIDE;
    if (wanted > BEHIND_MOST)
        wanted = BEHIND_MOST;
    *b = (struct behind){.count = 0};
    void *page = aligned_alloc(BEHIND_PAGE, BEHIND_PAGE);
    if (!page || wanted < 1) {
        b->error = page ? 0 : ENOMEM;
        free(page);
        return;
    }
    uint64_t state = (uint64_t)clock_ns();
    int64_t part[BEHIND_MOST]; /* one touch in each equal part, the parts in any order: nothing to read ahead */
    for (int64_t i = 0; i < wanted; i++) {
        int64_t other = (int64_t)(draw(&state) % (uint64_t)(i + 1));
        part[i] = i;
        part[i] = part[other];
        part[other] = i;
    }
    int64_t end = clock_ns() + NS_PER_S;
    for (int64_t i = 0; i < wanted && !b->error && clock_ns() < end; i++) {
        int64_t in_part = (int64_t)(draw(&state) % (uint64_t)(pages / wanted));
        int64_t number = part[i] * (pages / wanted) + in_part, in_file = file / BEHIND_PAGE;
        b->error = touch_twice(o, (int)(number / in_file), number % in_file * BEHIND_PAGE, page, b);
    }
    free(page);
}

void behind_json(const struct behind *b, struct json *j)
{
    json_object(j, "behind");
    json_int(j, "bytes", BEHIND_PAGE);
    json_int(j, "errno", b->error);
    json_array(j, "first");
    for (int i = 0; i < b->count; i++)
        json_double(j, NULL, seconds(b->first[i]));
    json_array_end(j);
    json_array(j, "second");
    for (int i = 0; i < b->count; i++)
        json_double(j, NULL, seconds(b->second[i]));
    json_array_end(j);
    json_object_end(j);
}
