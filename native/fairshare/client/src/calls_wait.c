// poll, select and epoll: a served file is always ready, as every regular file is.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include "client.h"
#include "real.h"

static bool any(const struct pollfd *list, nfds_t n) {
    for (nfds_t i = 0; fs_on() && i < n; i++)
        if (fs_get(list[i].fd)) return true;
    return false;
}

EXPORT int ppoll(struct pollfd *list, nfds_t n, const struct timespec *timeout, const sigset_t *signals) {
    if (!any(list, n)) return REAL(ppoll)(list, n, timeout, signals);
    struct pollfd others[n];
    for (nfds_t i = 0; i < n; i++) {
        others[i] = list[i];
        if (fs_get(list[i].fd)) others[i].fd = -1;
    }
    // Ours are ready now, so nobody waits.
    int ready = REAL(ppoll)(others, n, &(struct timespec){0, 0}, signals);
    if (ready < 0) return ready;
    for (nfds_t i = 0; i < n; i++) {
        list[i].revents = others[i].revents;
        if (!fs_get(list[i].fd)) continue;
        list[i].revents = list[i].events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
        ready += list[i].revents != 0;
    }
    return ready;
}

EXPORT int poll(struct pollfd *list, nfds_t n, int timeout) {
    return any(list, n) ? ppoll(list, n, NULL, NULL) : REAL(poll)(list, n, timeout);
}

static int choose(int n, fd_set *sets[3], bool *found) {
    int ready = 0;
    fd_set ours[2];
    FD_ZERO(&ours[0]);
    FD_ZERO(&ours[1]);
    for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
        if (!fs_get(fd)) continue;
        for (int k = 0; k < 3; k++) {
            if (!sets[k] || !FD_ISSET(fd, sets[k])) continue;
            *found = true;
            FD_CLR(fd, sets[k]);
            if (k < 2) {
                FD_SET(fd, &ours[k]);
                ready++;
            }
        }
    }
    if (!*found) return 0;
    struct timespec now = {0, 0};
    int others = REAL(pselect)(n, sets[0], sets[1], sets[2], &now, NULL);
    if (others < 0) return others;
    for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++)
        for (int k = 0; k < 2; k++)
            if (FD_ISSET(fd, &ours[k])) FD_SET(fd, sets[k]);
    return ready + others;
}

EXPORT int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e, struct timeval *restrict timeout) {
    bool found = false;
    int ready = fs_on() ? choose(n, (fd_set *[3]){r, w, e}, &found) : 0;
    return found ? ready : REAL(select)(n, r, w, e, timeout);
}

EXPORT int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                   const struct timespec *restrict timeout, const sigset_t *restrict signals) {
    bool found = false;
    int ready = fs_on() ? choose(n, (fd_set *[3]){r, w, e}, &found) : 0;
    return found ? ready : REAL(pselect)(n, r, w, e, timeout, signals);
}

EXPORT int epoll_ctl(int set, int operation, int fd, struct epoll_event *event) {
    if (!fs_get(fd)) return REAL(epoll_ctl)(set, operation, fd, event);
    errno = EPERM;  // what the kernel says of a regular file
    return -1;
}
