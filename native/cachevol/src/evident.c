#include "evident.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS     0x01021994 /* numbers of linux/magic.h */
#define RAMFS     0x858458f6
#define HUGETLBFS 0x958458f6
#define EXT       0xef53
#define XFS       0x58465342
#define BTRFS     0x9123683e
#define F2FS      0xf2f52010
#define NFS       0x6969
#define FUSE      0x65735546

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* on all processors, since Linux 6.5 */
#endif
#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

struct range {
    uint64_t offset, length;
};

struct pages {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* Whether no page is dirty: 1 or 0, or -1 where the kernel cannot tell. */
static int is_clean(int file)
{
    struct range all = {0, 0};
    struct pages pages;

    return syscall(SYS_cachestat, file, &all, &pages, 0U) ? -1 : pages.dirty == 0;
}

/* Whether the pages of a file on such a file system are those that the kernel counts: on overlays, for instance, they
   are another file's. */
static bool counts(uint32_t system)
{
    return system == EXT || system == XFS || system == BTRFS || system == F2FS || system == NFS || system == FUSE;
}

/* Whether anybody on this node has the file open for writing, or mapped: a lease for reading is given only while nobody
   has. False also where nobody says so: of other users' files, and on file systems without leases. The lease goes back
   at once; who opens the file meanwhile waits for that, and we are told by a signal that ends no program. */
static bool is_open_for_writing(int file)
{
    int signal = fcntl(file, F_GETSIG);

    if (signal < 0 || fcntl(file, F_SETSIG, SIGURG))
        return false;
    bool open = fcntl(file, F_SETLEASE, F_RDLCK) < 0 && errno == EAGAIN;
    fcntl(file, F_SETLEASE, F_UNLCK);
    fcntl(file, F_SETSIG, signal);
    return open;
}

enum cv_evident cv_changes_are_evident(int file, bool wait, const char **why)
{
    struct statfs system;
    struct statx  more;

    *why = "its file system does not say what it is";
    if (fstatfs(file, &system))
        return CV_EVIDENT_NEVER;
    uint32_t type = (uint32_t)system.f_type;
    *why          = "it lies in memory, where mapped writes do not show in its times";
    if (type == TMPFS || type == RAMFS || type == HUGETLBFS ||
        (!statx(file, "", AT_EMPTY_PATH, STATX_TYPE, &more) && (more.stx_attributes & STATX_ATTR_DAX)))
        return CV_EVIDENT_NEVER;
    *why = "not yet: a program has it open for writing";
    if (is_open_for_writing(file))
        return CV_EVIDENT_LATER;
    int clean = counts(type) ? is_clean(file) : -1;
    if (clean > 0)
        return CV_EVIDENT;
    if (clean < 0) { /* then nothing is dirty once all has been written out */
        *why = "what others wrote to it cannot be written out";
        return fdatasync(file) ? CV_EVIDENT_NEVER : CV_EVIDENT;
    }
    unsigned how = SYNC_FILE_RANGE_WRITE;
    if (wait)
        how |= SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(file, 0, 0, how);
    *why = "not yet: what was written to it is being written out";
    return is_clean(file) > 0 ? CV_EVIDENT : CV_EVIDENT_LATER;
}
