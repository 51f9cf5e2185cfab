/* What is done to one item: 0 or an errno, run->operation names the call. Phases are a table of that. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "md_run.h"

static int make_directory(struct md_run *run, const char *path)
{
    run->operation = "mkdir";
    return mkdir(path, 0775) == 0 ? 0 : errno;
}

static int remove_directory(struct md_run *run, const char *path)
{
    run->operation = "rmdir";
    return rmdir(path) == 0 ? 0 : errno;
}

static int stat_item(struct md_run *run, const char *path)
{
    struct stat st;
    run->operation = "stat";
    return stat(path, &st) == 0 ? 0 : errno;
}

static int remove_file(struct md_run *run, const char *path)
{
    run->operation = "unlink";
    return unlink(path) == 0 ? 0 : errno;
}

static int rename_item(struct md_run *run, const char *path)
{
    run->operation = "rename";
    return rename(path, run->other_name) == 0 ? 0 : errno;
}

/* Writes or reads size bytes at the start of a file, continuing after short transfers; 0, an errno, or -1 at its end. */
static int move(int fd, bool writing, char *data, int64_t size)
{
    for (int64_t done = 0; done < size;) {
        ssize_t moved = writing ? pwrite(fd, data + done, (size_t)(size - done), done)
                                : pread(fd, data + done, (size_t)(size - done), done);
        if (moved < 0 && errno != EINTR)
            return errno;
        if (moved == 0)
            return -1;
        if (moved > 0)
            done += moved;
    }
    return 0;
}

static int create_file(struct md_run *run, const char *path)
{
    run->operation = "open";
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0664), error = 0;
    if (fd < 0)
        return errno;
    if (run->o->write_bytes > 0) {
        run->operation = "write";
        error = move(fd, true, run->buffer, run->o->write_bytes);
        run->bytes += error ? 0 : run->o->write_bytes;
        if (!error && run->o->sync) {
            run->operation = "fsync";
            error = fsync(fd) == 0 ? 0 : errno;
        }
    }
    if (!error)
        run->operation = "close";
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

static int read_file(struct md_run *run, const char *path)
{
    run->operation = "open";
    int fd = open(path, O_RDWR | O_CLOEXEC), error = 0; /* as mdtest: file systems may lock otherwise for O_RDONLY */
    if (fd < 0)
        return errno;
    if (run->o->read_bytes > 0) {
        run->operation = "read";
        error = move(fd, false, run->buffer, run->o->read_bytes);
        run->bytes += error ? 0 : run->o->read_bytes;
    }
    close(fd);
    return error;
}

/* Shifts are in strides (-N): who works on whose items. */
const struct md_phase md_phases[MD_PHASES] = {
    [MD_TREE_CREATE] = {"tree-create", "Tree creation", .tree = true, .operation = make_directory},
    [MD_DIRECTORY_CREATE] = {"directory-create", "Directory creation", .directory = true,
                             .operation = make_directory},
    [MD_DIRECTORY_STAT] = {"directory-stat", "Directory stat", .directory = true, .shift = 1,
                           .shuffled = true, .repeatable = true, .operation = stat_item},
    [MD_DIRECTORY_RENAME] = {"directory-rename", "Directory rename", .directory = true, .shift = 1,
                             .renames = true, .repeatable = true, .operation = rename_item},
    [MD_DIRECTORY_REMOVE] = {"directory-remove", "Directory removal", .directory = true, .shift = 3,
                             .operation = remove_directory},
    [MD_FILE_CREATE] = {"file-create", "File creation", .writes = true, .operation = create_file},
    [MD_FILE_STAT] = {"file-stat", "File stat", .shift = 1, .shuffled = true, .repeatable = true,
                      .operation = stat_item},
    [MD_FILE_READ] = {"file-read", "File read", .shift = 2, .shuffled = true, .reads = true,
                      .repeatable = true, .operation = read_file},
    [MD_FILE_RENAME] = {"file-rename", "File rename", .shift = 1, .renames = true, .repeatable = true,
                        .operation = rename_item},
    [MD_FILE_REMOVE] = {"file-remove", "File removal", .shift = 3, .operation = remove_file},
    [MD_TREE_REMOVE] = {"tree-remove", "Tree removal", .tree = true, .backwards = true,
                        .operation = remove_directory},
};
