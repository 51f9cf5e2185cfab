// The library's start in a process, and what it does around libc's fork: the one place that knows all parts.
#define _GNU_SOURCE
#include "client.h"

// Positions go to the server, and no lock is held by a thread that the child does not have. In this order, and let go
// in the opposite one: nobody who has a later one waits for an earlier one.
static void (*const holds[])(bool) = {fs_hold_sessions, fs_hold_paths, fs_hold_directories, fs_hold_streams, fs_hold_table};
enum { HOLDS = sizeof holds / sizeof *holds };

static void before_fork(void) {
    fs_share_all();
    for (int i = 0; i < HOLDS; i++) holds[i](true);
}

static void after_fork(void) {
    for (int i = HOLDS; i-- > 0;) holds[i](false);
}

// It speaks for itself.
static void after_fork_in_child(void) {
    fs_heard_fork();
    after_fork();
    fs_forget_sessions();
    fs_renew_locks();
}

__attribute__((constructor)) static void start(void) {
    fs_read_environment();
    if (!fs_config.on) return;
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    fs_listen_for_forks();
    fs_cwd_init();
    fs_on_standard = fs_standard_changed;
    fs_adopt_inherited();
}
