// Changing users. The server takes a process for whom the kernel says it was when its session began; so whoever
// becomes another user begins another session. Files that are open stay open with the rights that they were opened
// with, as in a kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/types.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

static _Atomic uint64_t process;             // who the threads of this process are
static uint64_t first;                       // who they were when the program began, and their user
static uid_t first_user;
static _Thread_local bool strange;           // this thread alone is somebody else

// User, group and other groups, in one number (FNV-1a).
static uint64_t now(void) {
    gid_t groups[NGROUPS_MAX > 4096 ? 4096 : NGROUPS_MAX];
    int count = getgroups((int)(sizeof groups / sizeof *groups), groups);
    uint64_t hash = 0xcbf29ce484222325u;
#define MIX(value) hash = (hash ^ (uint64_t)(value)) * 0x100000001b3u
    MIX(geteuid());
    MIX(getegid());
    for (int i = 0; i < count; i++) MIX(groups[i]);
    return hash ? hash : 1;
}

uint64_t fs_who(void) {
    uint64_t who = process;
    if (who) return who;
    first = now();
    first_user = geteuid();
    atomic_compare_exchange_strong(&process, &who, first);
    return process;
}

bool fs_gave_up(uid_t user) { return fs_who() != first && user == first_user && user != geteuid(); }

bool fs_strange_thread(void) { return strange; }

// setfsuid and raw system calls change one thread: a session is of all of them, so such a thread is not served.
void fs_thread_changed(void) {
    strange = (uid_t)REAL(setfsuid)((uid_t)-1) != geteuid() || (gid_t)REAL(setfsgid)((gid_t)-1) != getegid() ||
              now() != fs_who();
}

#define CHANGES(name, params, args)                \
    EXPORT int name params {                       \
        if (fs_on()) fs_who();                     \
        int result = REAL(name) args;              \
        if (result == 0 && fs_on()) {              \
            process = now();                       \
            strange = false;                       \
        }                                          \
        return result;                             \
    }

CHANGES(setuid, (uid_t uid), (uid))
CHANGES(seteuid, (uid_t uid), (uid))
CHANGES(setreuid, (uid_t uid, uid_t effective), (uid, effective))
CHANGES(setresuid, (uid_t uid, uid_t effective, uid_t saved), (uid, effective, saved))
CHANGES(setgid, (gid_t gid), (gid))
CHANGES(setegid, (gid_t gid), (gid))
CHANGES(setregid, (gid_t gid, gid_t effective), (gid, effective))
CHANGES(setresgid, (gid_t gid, gid_t effective, gid_t saved), (gid, effective, saved))
CHANGES(setgroups, (size_t count, const gid_t *groups), (count, groups))
CHANGES(initgroups, (const char *user, gid_t group), (user, group))

EXPORT int setfsuid(uid_t uid) {
    int before = REAL(setfsuid)(uid);
    if (fs_on()) fs_thread_changed();
    return before;
}

EXPORT int setfsgid(gid_t gid) {
    int before = REAL(setfsgid)(gid);
    if (fs_on()) fs_thread_changed();
    return before;
}
