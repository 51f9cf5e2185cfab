/* POSIX: one pread or pwrite per operation, no seek. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backend.h"
#include "options_data.h"
#include "transfer.h"

static const char *posix_check(const struct data_options *o)
{
    if (o->collective)
        return "-c: collective I/O needs -a MPIIO or HDF5";
    if (o->preallocate)
        return "--mpiio.preallocate: needs -a MPIIO";
    if (o->file_view)
        return "--mpiio.useFileView: needs -a MPIIO";
    if (o->direct && o->transfer % 512)
        return "--posix.odirect: the transfer size must be a multiple of 512 bytes";
    return NULL;
}

int fd_open(struct file *f, const char *path, enum access access)
{
    int flags = access == ACCESS_WRITE ? O_CREAT | O_RDWR : O_RDONLY;
    if (f->options->direct)
        flags |= O_DIRECT;
    f->fd = open(path, flags | O_CLOEXEC, 0664);
    return f->fd < 0 ? errno : 0;
}

static int64_t posix_transfer(struct file *f, enum access access, void *data, int64_t length, int64_t offset)
{
    char *at = data;
    int64_t left = length;
    for (;;) {
        ssize_t moved = access == ACCESS_WRITE ? pwrite(f->fd, at, (size_t)left, offset)
                                               : pread(f->fd, at, (size_t)left, offset);
        if (moved == left)
            return length;
        if (moved < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (moved == 0)
            return access == ACCESS_WRITE ? -EIO : length - left;
        f->short_transfers++;
        at += moved;
        left -= moved;
        offset += moved;
    }
}

int fd_sync(struct file *f)
{
    while (fsync(f->fd) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

int fd_close(struct file *f)
{
    int fd = f->fd;
    f->fd = -1;
    return close(fd) == 0 ? 0 : errno;
}

const struct backend backend_posix = {
    .name = "POSIX",
    .check = posix_check,
    .open = fd_open,
    .transfer = posix_transfer,
    .sync = fd_sync,
    .close = fd_close,
    .loop = transfer_loop,
};
