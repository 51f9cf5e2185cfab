/*
 * How bytes get to a file: one table entry per interface, one file per entry.
 * To add a backend, write backend_<name>.c with a struct backend and list it
 * in backend.c; nothing else in the program knows how it works.
 */
#ifndef IOKERNEL_BACKEND_H
#define IOKERNEL_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

struct comm;
struct data_options;
struct transfer;

enum access { ACCESS_WRITE, ACCESS_READ };

struct file {
    const struct data_options *options;
    const struct comm *comm;
    int task;              /* whose data: the rank that wrote it */
    int fd;                /* of backends on file descriptors */
    void *private;         /* anything else a backend needs */
    int64_t short_transfers; /* calls that moved less than asked and were continued */
    char problem[256];     /* what the interface itself says about its last error, or "" */
};

struct backend {
    const char *name;
    bool hidden; /* not selected by -a: takes the place of another for some options */
    bool framed; /* its files hold more than the data: sizes are not those of the test */

    /* A line that tells why this combination of options cannot work, or NULL. */
    const char *(*check)(const struct data_options *o);

    /* 0 or an errno. A write opens for reading too and creates the file when it is absent. */
    int (*open)(struct file *f, const char *path, enum access access);

    /*
     * Moves length bytes, continuing after short transfers; the bytes moved,
     * fewer than length only at the end of the file, or a negative errno.
     */
    int64_t (*transfer)(struct file *f, enum access access, void *data, int64_t length, int64_t offset);

    int (*sync)(struct file *f);
    int (*close)(struct file *f);

    /* The loop over operations; transfer_loop, or the backend's own. Returns as transfer_loop does. */
    void (*loop)(struct transfer *t);

    /* Buffers that the loop needs, each of one transfer; NULL: one. */
    int (*buffers)(const struct data_options *o);
};

extern const struct backend *const backends[];

/* The backend for -a and the other options; NULL when no such interface is built in. */
const struct backend *backend_find(const char *api, int queue_depth);

/* True when the kernel lets this process use io_uring. */
bool backend_uring_available(void);

extern const struct backend backend_posix, backend_uring, backend_mpiio, backend_hdf5;

/* Shared by the backends on file descriptors. */
int fd_open(struct file *f, const char *path, enum access access);
int fd_sync(struct file *f);
int fd_close(struct file *f);

#endif
