// Other programs: before one starts, it must find positions on the server and the working directory in
// its environment. fork is handled by pthread_atfork (config.c).
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "real.h"

// The environment for another program: `given`, with the working directory as it is now.
static char **with_cwd(char *const *given, char *entry, size_t size) {
    const char *cwd = fs_cwd();
    size_t n = 0, kept = 0;
    while (given && given[n]) n++;
    char **out = malloc((n + 2) * sizeof *out);
    if (!out) return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(given[i], "FAIRSHARE_CWD=", 14) != 0) out[kept++] = given[i];
    if (cwd) {
        snprintf(entry, size, "FAIRSHARE_CWD=%s", cwd);
        out[kept++] = entry;
    }
    out[kept] = NULL;
    return out;
}

#define PREPARED(environment, call)                                            \
    char entry[PATH_MAX + 32];                                                 \
    fs_share_all();                                                            \
    char **changed = with_cwd(environment, entry, sizeof entry);               \
    if (!changed) {                                                            \
        errno = ENOMEM;                                                        \
        return -1;                                                             \
    }                                                                          \
    int result = call;                                                         \
    int problem = errno;                                                       \
    free(changed);                                                             \
    errno = problem;                                                           \
    return result;

EXPORT int execve(const char *path, char *const argv[], char *const environment[]) {
    if (!fs_on()) return REAL(execve)(path, argv, environment);
    PREPARED(environment, REAL(execve)(path, argv, changed))
}

EXPORT int execvpe(const char *file, char *const argv[], char *const environment[]) {
    if (!fs_on()) return REAL(execvpe)(file, argv, environment);
    PREPARED(environment, REAL(execvpe)(file, argv, changed))
}

EXPORT int fexecve(int fd, char *const argv[], char *const environment[]) {
    if (!fs_on()) return REAL(fexecve)(fd, argv, environment);
    if (fs_get(fd)) {
        errno = EACCES;  // programs cannot be started from here
        return -1;
    }
    PREPARED(environment, REAL(fexecve)(fd, argv, changed))
}

EXPORT int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
EXPORT int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

// The list forms, with their arguments collected; `last` is what follows the NULL (execle's environment).
#define COLLECT(first, argv, list)                                          \
    size_t n = 1;                                                           \
    va_list list;                                                           \
    va_start(list, first);                                                  \
    while (va_arg(list, char *)) n++;                                       \
    va_end(list);                                                           \
    char *argv[n + 1];                                                      \
    argv[0] = (char *)(uintptr_t)first;                                     \
    va_start(list, first);                                                  \
    for (size_t i = 1; i <= n; i++) argv[i] = va_arg(list, char *);

EXPORT int execl(const char *path, const char *first, ...) {
    COLLECT(first, argv, list)
    va_end(list);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...) {
    COLLECT(first, argv, list)
    va_end(list);
    return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...) {
    COLLECT(first, argv, list)
    char **environment = va_arg(list, char **);
    va_end(list);
    return execve(path, argv, environment);
}

// The new process may start after its parent has closed what it inherits: the descriptors keep it open.
EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]) {
    if (!fs_on()) return REAL(posix_spawn)(pid, path, actions, attributes, argv, environment);
    PREPARED(environment, REAL(posix_spawn)(pid, path, actions, attributes, argv, changed))
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]) {
    if (!fs_on()) return REAL(posix_spawnp)(pid, file, actions, attributes, argv, environment);
    PREPARED(environment, REAL(posix_spawnp)(pid, file, actions, attributes, argv, changed))
}

// A child of vfork shares our memory until it starts a program; it must not touch our tables. POSIX
// allows fork in its place (and a wrapper could not call the real one: its frame would be gone).
EXPORT pid_t vfork(void) { return fork(); }

EXPORT int system(const char *command) {
    if (fs_on()) fs_share_all();
    return REAL(system)(command);
}

EXPORT FILE *popen(const char *command, const char *mode) {
    if (fs_on()) fs_share_all();
    return REAL(popen)(command, mode);
}
