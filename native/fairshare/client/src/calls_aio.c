// POSIX asynchronous I/O on served files: done at once, by the caller. libc's own would hand the descriptor to
// threads that go past this library, and programs that wait for them (MPI's iwrite) would wait for ever.
//
// A request that is done is one for libc's aio_error, aio_return and aio_suspend, too: they look into it.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

struct notice {
    void (*call)(union sigval);
    union sigval value;
};

static void *tell(void *with) {
    struct notice notice = *(struct notice *)with;
    free(with);
    notice.call(notice.value);
    return NULL;
}

static void notify(const struct sigevent *event) {
    if (!event) return;
    if (event->sigev_notify == SIGEV_SIGNAL) {
        siginfo_t info = {.si_signo = event->sigev_signo, .si_code = SI_ASYNCIO};
        info.si_pid = getpid();
        info.si_uid = getuid();
        info.si_value = event->sigev_value;
        REAL(syscall)(SYS_rt_sigqueueinfo, getpid(), event->sigev_signo, &info);
    } else if (event->sigev_notify == SIGEV_THREAD && event->sigev_notify_function) {
        struct notice *notice = malloc(sizeof *notice);
        pthread_attr_t attributes;
        pthread_t thread;
        if (!notice) return;
        *notice = (struct notice){event->sigev_notify_function, event->sigev_value};
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (pthread_create(&thread, &attributes, tell, notice) != 0) free(notice);
        pthread_attr_destroy(&attributes);
    }
}

// libc's fields for the outcome, which its own functions read.
static void done(struct aiocb *request, ssize_t result) {
    request->__return_value = result;
    __atomic_store_n(&request->__error_code, result < 0 ? errno : 0, __ATOMIC_RELEASE);
}

static void move(struct aiocb *request, bool write) {
    void *at = (void *)(uintptr_t)request->aio_buf;
    done(request, write ? pwrite(request->aio_fildes, at, request->aio_nbytes, request->aio_offset)
                        : pread(request->aio_fildes, at, request->aio_nbytes, request->aio_offset));
}

EXPORT int aio_read(struct aiocb *request) {
    if (!fs_get(request->aio_fildes)) return REAL(aio_read)(request);
    move(request, false);
    notify(&request->aio_sigevent);
    return 0;
}

EXPORT int aio_write(struct aiocb *request) {
    if (!fs_get(request->aio_fildes)) return REAL(aio_write)(request);
    move(request, true);
    notify(&request->aio_sigevent);
    return 0;
}

EXPORT int aio_fsync(int operation, struct aiocb *request) {
    if (!fs_get(request->aio_fildes)) return REAL(aio_fsync)(operation, request);
    if (operation != O_SYNC && operation != O_DSYNC) return fs_fail(EINVAL);
    done(request, (operation == O_DSYNC ? fdatasync : fsync)(request->aio_fildes));
    notify(&request->aio_sigevent);
    return 0;
}

EXPORT int aio_cancel(int fd, struct aiocb *request) {
    return fs_get(fd) ? AIO_ALLDONE : REAL(aio_cancel)(fd, request);
}

EXPORT int lio_listio(int mode, struct aiocb *const list[restrict], int count, struct sigevent *restrict event) {
    bool ours = false;
    for (int i = 0; i < count; i++) ours |= list[i] && list[i]->aio_lio_opcode != LIO_NOP && fs_get(list[i]->aio_fildes);
    if (!ours) return REAL(lio_listio)(mode, list, count, event);
    bool failed = false;
    for (int i = 0; i < count; i++) {
        if (!list[i] || list[i]->aio_lio_opcode == LIO_NOP) continue;
        move(list[i], list[i]->aio_lio_opcode == LIO_WRITE);
        failed |= list[i]->__error_code != 0;
        notify(&list[i]->aio_sigevent);
    }
    if (mode == LIO_NOWAIT) notify(event);
    if (mode == LIO_WAIT && failed) errno = EIO;
    return mode == LIO_WAIT && failed ? -1 : 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"
struct aiocb64;
int aio_read64(struct aiocb64 *request) ALIAS(aio_read);
int aio_write64(struct aiocb64 *request) ALIAS(aio_write);
int aio_fsync64(int operation, struct aiocb64 *request) ALIAS(aio_fsync);
int aio_cancel64(int fd, struct aiocb64 *request) ALIAS(aio_cancel);
int lio_listio64(int mode, struct aiocb64 *const list[restrict], int count, struct sigevent *restrict event)
    ALIAS(lio_listio);
#pragma GCC diagnostic pop
