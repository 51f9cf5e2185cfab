// Calls that libc carries out by itself, past wrappers of open and read: `past_library NAME FOLDER`. Each either goes
// through, as on an ordinary folder, or fails at once with the errno that the documentation says.
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

static const char *root;
static char room[8][4096];

static const char *at(const char *name) {  // one of eight paths in the folder
    static unsigned turn;
    char *out = room[turn++ % 8];
    snprintf(out, sizeof room[0], "%s/%s", root, name);
    return out;
}

#define MUST(condition)                                                                               \
    do {                                                                                              \
        errno = 0;                                                                                    \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));              \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)
// The call fails, at once, with this errno.
#define FAILS(number, call)                                                                           \
    do {                                                                                              \
        errno = 0;                                                                                    \
        long got = (long)(call);                                                                      \
        if (got != -1 || errno != (number)) {                                                         \
            fprintf(stderr, "line %d: %s is %ld, errno %s\n", __LINE__, #call, got, strerror(errno)); \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

static void put(const char *name, const char *text) {
    int fd = open(at(name), O_CREAT | O_WRONLY | O_TRUNC, 0644);
    MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static void has(const char *name, const char *text) {
    char found[256] = {0};
    int fd = open(at(name), O_RDONLY);
    MUST(fd >= 0 && read(fd, found, sizeof found - 1) >= 0 && close(fd) == 0);
    MUST(strcmp(found, text) == 0);
}

// ---- what goes through ----
static void globs(void) {
    put("a1", ""), put("a2", ""), put("b", "");
    glob_t found = {0};
    MUST(glob(at("a*"), 0, NULL, &found) == 0 && found.gl_pathc == 2);
    MUST(strcmp(found.gl_pathv[0], at("a1")) == 0 && strcmp(found.gl_pathv[1], at("a2")) == 0);
    globfree(&found);
    MUST(chdir(root) == 0);
    MUST(glob("*", 0, NULL, &found) == 0 && found.gl_pathc == 3 && strcmp(found.gl_pathv[2], "b") == 0);
    globfree(&found);
    MUST(glob("c*", 0, NULL, &found) == GLOB_NOMATCH);
}

static int seen[8], files, last_level;
static int count(const char *path, const struct stat *st, int kind, struct FTW *place) {
    (void)st;
    seen[kind]++;
    if (kind == FTW_F) MUST(strcmp(path + place->base, "file") == 0);
    if (place->level > last_level) last_level = place->level;
    return 0;
}
static int count_files(const char *path, const struct stat *st, int kind) {
    (void)path, (void)st;
    files += kind == FTW_F;
    return files == 2 ? 7 : 0;
}
static void walks(void) {
    MUST(mkdir(at("d"), 0755) == 0 && mkdir(at("d/e"), 0755) == 0);
    put("d/file", "x"), put("d/e/file", "y");
    MUST(symlink("e", at("d/link")) == 0 && symlink("gone", at("d/broken")) == 0);
    MUST(nftw(at("d"), count, 8, FTW_PHYS | FTW_DEPTH) == 0);
    MUST(seen[FTW_F] == 2 && seen[FTW_DP] == 2 && seen[FTW_SL] == 2 && seen[FTW_D] == 0 && last_level == 2);
    memset(seen, 0, sizeof seen);
    MUST(nftw(at("d"), count, 8, 0) == 0);
    MUST(seen[FTW_D] == 2 && seen[FTW_SLN] == 1 && seen[FTW_SL] == 0);
    MUST(ftw(at("d"), count_files, 8) == 7);  // what the function says ends it
    MUST(nftw(at("absent"), count, 8, 0) == -1);
}

static void aio(void) {
    char text[] = "asynchronous", back[16] = {0};
    int fd = open(at("f"), O_CREAT | O_RDWR, 0644);
    struct aiocb out = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 12, .aio_offset = 5};
    struct aiocb in = {.aio_fildes = fd, .aio_buf = back, .aio_nbytes = 12, .aio_offset = 5};
    const struct aiocb *wait[1] = {&out};
    MUST(aio_write(&out) == 0 && aio_suspend(wait, 1, NULL) == 0 && aio_error(&out) == 0 && aio_return(&out) == 12);
    struct aiocb sync = {.aio_fildes = fd};
    wait[0] = &sync;
    MUST(aio_fsync(O_SYNC, &sync) == 0 && aio_suspend(wait, 1, NULL) == 0 && aio_return(&sync) == 0);
    wait[0] = &in;
    MUST(aio_read(&in) == 0 && aio_suspend(wait, 1, NULL) == 0 && aio_return(&in) == 12 && strcmp(back, text) == 0);
    struct aiocb wrong = {.aio_fildes = open(at("f"), O_RDONLY), .aio_buf = text, .aio_nbytes = 1};
    wait[0] = &wrong;
    if (aio_write(&wrong) == 0) {  // it may fail now or later
        MUST(aio_suspend(wait, 1, NULL) == 0 && aio_error(&wrong) == EBADF && aio_return(&wrong) == -1);
    }
    MUST(aio_cancel(fd, NULL) == AIO_ALLDONE);
}

static volatile sig_atomic_t told;
static void tell(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    told += info->si_code == SI_ASYNCIO && info->si_value.sival_int == 42;
}
static void aio_lists(void) {
    struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    int fd = open(at("f"), O_CREAT | O_RDWR, 0644);
    struct aiocb parts[2];
    memset(parts, 0, sizeof parts);
    struct aiocb *list[] = {&parts[0], NULL, &parts[1]};
    for (int i = 0; i < 2; i++) {
        parts[i].aio_fildes = fd;
        parts[i].aio_buf = i ? "def" : "abc";
        parts[i].aio_nbytes = 3;
        parts[i].aio_offset = 3 * i;
        parts[i].aio_lio_opcode = LIO_WRITE;
    }
    MUST(lio_listio(LIO_WAIT, list, 3, NULL) == 0 && aio_return(&parts[0]) == 3 && aio_return(&parts[1]) == 3);
    has("f", "abcdef");
    parts[0].aio_sigevent = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1,
                                              .sigev_value = {.sival_int = 42}};
    MUST(aio_write(&parts[0]) == 0);
    for (int i = 0; i < 500 && !told; i++) usleep(10000);
    MUST(told == 1);
}

static void prints(void) {
    int fd = open(at("f"), O_CREAT | O_WRONLY, 0644);
    MUST(dprintf(fd, "%d %s", 7, "words") == 7 && close(fd) == 0);
    has("f", "7 words");
}

static void open_files_by_number(void) {
    put("f", "by number");
    char path[64], found[4096] = {0};
    int fd = open(at("f"), O_RDWR);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct stat a, b;
    MUST(fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino && a.st_size == b.st_size);
    MUST(lstat(path, &b) == 0 && S_ISLNK(b.st_mode));
    MUST(readlink(path, found, sizeof found) == (ssize_t)strlen(at("f")) && strcmp(found, at("f")) == 0);
    int again = open(path, O_RDONLY);
    char text[16] = {0};
    MUST(again >= 0 && again != fd && read(again, text, 15) == 9 && strcmp(text, "by number") == 0);
    MUST(lseek(fd, 0, SEEK_CUR) == 0);  // its own position
    FAILS(EEXIST, open(path, O_CREAT | O_EXCL | O_RDONLY, 0600));
    MUST(unlink(at("f")) == 0);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    FILE *stream = fopen(path, "r");
    MUST(stream && fgets(text, sizeof text, stream) && strcmp(text, "by number") == 0);
    MUST(truncate(path, 2) == 0 && fstat(fd, &a) == 0 && a.st_size == 2);
}

static void standard_input(void) {
    char text[16] = {0};
    put("in", "through a name");
    int fd = open(at("in"), O_RDONLY);
    MUST(dup2(fd, 0) == 0);
    int again = open("/dev/stdin", O_RDONLY);
    MUST(again >= 0 && read(again, text, 15) == 14 && strcmp(text, "through a name") == 0);
}

static void names_of_all_kinds(void) {
    struct stat st;
    MUST(mkfifo(at("fifo"), 0640) == 0 && stat(at("fifo"), &st) == 0 && S_ISFIFO(st.st_mode));
    MUST((st.st_mode & 07777) == 0640);
    MUST(mknod(at("socket"), S_IFSOCK | 0600, 0) == 0 && stat(at("socket"), &st) == 0 && S_ISSOCK(st.st_mode));
    FAILS(EEXIST, mkfifo(at("fifo"), 0600));
    MUST(rename(at("fifo"), at("other")) == 0 && unlink(at("other")) == 0);
}

static void from_folders_above(void) {
    put("f", "reached");
    char text[16] = {0}, *slash = strrchr(root, '/'), above[4096], name[4096];
    while (slash > root && slash[1] == '\0') slash--;
    snprintf(above, sizeof above, "%.*s", slash == root ? 1 : (int)(slash - root), root);
    snprintf(name, sizeof name, "%s/f", slash + 1);
    int real = open(above, O_RDONLY | O_DIRECTORY), fd;
    MUST(chdir(root) == 0);  // which says nothing of the folder that is open
    MUST((fd = openat(real, name, O_RDONLY)) >= 0 && read(fd, text, 15) == 7);
    int etc = open("/usr/lib", O_RDONLY | O_DIRECTORY);
    snprintf(above, sizeof above, "../..%s/f", root);
    MUST((fd = openat(etc, above, O_RDONLY)) >= 0);
    MUST((fd = openat(etc, "../lib", O_RDONLY)) >= 0);
    struct stat a, b;
    MUST(fstat(etc, &a) == 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino);
}

static void calls_by_number(void) {
    char text[8] = {0};
    int fd = (int)syscall(SYS_openat, AT_FDCWD, at("f"), O_CREAT | O_RDWR, 0644);
    MUST(fd >= 0 && syscall(SYS_write, fd, "four", 4) == 4 && syscall(SYS_pread64, fd, text, 7, 0) == 4);
    MUST(strcmp(text, "four") == 0 && syscall(SYS_lseek, fd, 0, SEEK_CUR) == 4 && syscall(SYS_close, fd) == 0);
}

// ---- changing users; as root ----
static void other_users(void) {
    char text[16] = {0};
    put("private", "roots own");
    put("log", "");
    MUST(chmod(at("private"), 0600) == 0 && chmod(at("log"), 0600) == 0 && chmod(root, 0777) == 0);
    int log = open(at("log"), O_WRONLY), folder = open(root, O_RDONLY | O_DIRECTORY);
    MUST(setgroups(0, NULL) == 0 && setegid(54321) == 0 && seteuid(54321) == 0);
    FAILS(EACCES, open(at("private"), O_RDONLY));
    FAILS(EACCES, openat(folder, "private", O_RDONLY));
    FAILS(EPERM, fchmod(log, 0666));
    MUST(write(log, "by root", 7) == 7);  // what is open stays so, with its rights
    int own = open(at("own"), O_CREAT | O_WRONLY, 0644);
    struct stat st;
    MUST(own >= 0 && fstat(own, &st) == 0 && st.st_uid == 54321);
    MUST(unlinkat(folder, "own", 0) == 0);
    MUST(seteuid(0) == 0 && setegid(0) == 0);
    int fd = open(at("private"), O_RDONLY);
    MUST(fd >= 0 && read(fd, text, 15) == 9);
    MUST(write(own, "x", 1) == 1);
    MUST(setgid(54321) == 0 && setuid(54321) == 0);
    FAILS(EACCES, open(at("private"), O_RDONLY));
    FAILS(EACCES, access(at("private"), R_OK));
    MUST(pread(fd, text, 15, 0) == 9);
}

// One thread that becomes another user has no session of its own: nothing is done for it in another's name.
static void one_thread_is_another_user(void) {
    put("f", "x");
    MUST(syscall(SYS_setresuid, -1, 54321, -1) == 0);
    FAILS(EPERM, open(at("f"), O_RDONLY));
    MUST(syscall(SYS_setresuid, -1, 0, -1) == 0);
    MUST(open(at("f"), O_RDONLY) >= 0);
}

// A child that libc does not know of: it has sessions of its own, and its parent keeps his.
static void forks_that_nobody_hears(void) {
    char text[8] = {0};
    put("f", "abcdef");
    int fd = open(at("f"), O_RDWR);
    MUST(read(fd, text, 2) == 2);
    pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0) {
        for (int i = 0; i < 200; i++) put("of the child", "x");
        FAILS(EIO, read(fd, text, 1));  // the position was its parent's
        exit(0);
    }
    for (int i = 0; i < 200; i++) put("of the parent", "y");
    int state = 0;
    MUST(waitpid(child, &state, 0) == child && state == 0);
    MUST(read(fd, text, 7) == 4 && strcmp(text, "cdef") == 0);
    has("of the child", "x");
}

// ---- what is refused ----
static void sockets(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0), fd = open(at("f"), O_CREAT | O_RDWR, 0644);
    char text[4];
    snprintf(name.sun_path, sizeof name.sun_path, "%s", at("s"));
    FAILS(EOPNOTSUPP, bind(s, (struct sockaddr *)&name, sizeof name));
    FAILS(EOPNOTSUPP, connect(s, (struct sockaddr *)&name, sizeof name));
    MUST(chdir(root) == 0);
    strcpy(name.sun_path, "s");
    FAILS(EOPNOTSUPP, bind(s, (struct sockaddr *)&name, sizeof name));
    FAILS(ENOTSOCK, send(fd, "x", 1, 0));
    FAILS(ENOTSOCK, recv(fd, text, 1, 0));
    int size = 0;
    socklen_t length = sizeof size;
    FAILS(ENOTSOCK, getsockopt(fd, SOL_SOCKET, SO_TYPE, &size, &length));
}

static void refusals(void) {
    put("f", "x");
    char *paths[] = {(char *)(uintptr_t)root, NULL};
    errno = 0;
    MUST(!fts_open(paths, FTS_PHYSICAL, NULL) && errno == EOPNOTSUPP);
    wordexp_t words;
    MUST(wordexp(at("*"), &words, 0) == WRDE_NOSPACE);
    FAILS(EOPNOTSUPP, nftw(root, count, 8, FTW_CHDIR));
    FAILS(EOPNOTSUPP, inotify_add_watch(inotify_init(), at("f"), IN_MODIFY));
    MUST(mkfifo(at("fifo"), 0600) == 0);
    FAILS(EOPNOTSUPP, open(at("fifo"), O_RDONLY));
    int fd = open(at("f"), O_RDWR);
    errno = 0;
    MUST(mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == ENODEV);
    FAILS(EOPNOTSUPP, syscall(SYS_getdents64, open(root, O_RDONLY | O_DIRECTORY), room, 100));
    struct {
        unsigned long long flags, mode, resolve;
    } how = {0};
    FAILS(ENOSYS, syscall(SYS_openat2, AT_FDCWD, at("f"), &how, sizeof how));
    FAILS(ENOENT, execl(at("f"), "f", (char *)NULL));
    posix_spawn_file_actions_t actions;
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, at("f"), O_WRONLY, 0);
    char *argv[] = {"true", NULL};
    MUST(posix_spawnp(&child, "true", &actions, NULL, argv, environ) == ENOENT);
}

// In a served working directory a call that nobody intercepts finds and makes nothing, least of all in the folder that
// was the working directory before (FOLDER/.. is not looked at here: the test looks at it).
static void unknown_calls_in_a_served_folder(void) {
    MUST(chdir(root) == 0);
    FAILS(ENOENT, syscall(SYS_mkdirat, AT_FDCWD, "made", 0700));
    FAILS(ENOENT, syscall(SYS_unlinkat, AT_FDCWD, "decoy", 0));
    FAILS(ENOENT, syscall(SYS_truncate, "decoy", 0));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*check)(void);
    } checks[] = {{"globs", globs}, {"walks", walks}, {"aio", aio}, {"aio_lists", aio_lists}, {"prints", prints},
                  {"open_files_by_number", open_files_by_number}, {"standard_input", standard_input},
                  {"names_of_all_kinds", names_of_all_kinds}, {"from_folders_above", from_folders_above},
                  {"calls_by_number", calls_by_number}, {"other_users", other_users},
                  {"one_thread_is_another_user", one_thread_is_another_user}, {"forks_that_nobody_hears", forks_that_nobody_hears}, {"sockets", sockets},
                  {"refusals", refusals}, {"unknown_calls_in_a_served_folder", unknown_calls_in_a_served_folder}};
    alarm(60);  // nothing hangs
    if (argc != 3) return 2;
    root = argv[2];
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(argv[1], checks[i].name) == 0) return checks[i].check(), 0;
    return 2;
}
