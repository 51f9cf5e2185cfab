#include "filesystem.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

/* statfs(2), and linux/magic.h */
enum {
    MAGIC_TMPFS = 0x01021994,
    MAGIC_RAMFS = (int)0x858458f6,
    MAGIC_HUGETLBFS = (int)0x958458f6,
    MAGIC_EXT = 0xef53,
    MAGIC_XFS = 0x58465342,
    MAGIC_BTRFS = (int)0x9123683e,
    MAGIC_F2FS = (int)0xf2f52010,
    MAGIC_BCACHEFS = (int)0xca451a4e,
    MAGIC_JFS = 0x3153464a,
    MAGIC_NILFS = 0x3434,
    MAGIC_REISERFS = 0x52654973,
    MAGIC_MSDOS = 0x4d44,
    MAGIC_EXFAT = 0x2011bab0,
    MAGIC_NTFS = 0x7366746e,
    MAGIC_EROFS = (int)0xe0f5e1e2,
    MAGIC_SQUASHFS = 0x73717368,
    MAGIC_NFS = 0x6969,
    MAGIC_LUSTRE = 0x0bd00bd0,
    MAGIC_CEPH = 0x00c36400,
    MAGIC_SMB = 0x517b,
    MAGIC_CIFS = (int)0xff534d42,
    MAGIC_SMB2 = (int)0xfe534d42,
    MAGIC_9P = 0x01021997,
    MAGIC_AFS = 0x5346414f,
    MAGIC_BEEGFS = 0x19830326,
    MAGIC_GFS2 = 0x01161970,
    MAGIC_OCFS2 = 0x7461636f,
    MAGIC_OVERLAY = 0x794c7630,
    MAGIC_AUFS = 0x61756673,
    MAGIC_FUSE = 0x65735546,
    MAGIC_ECRYPTFS = 0xf15f,
    MAGIC_ZFS = 0x2fc12fc1,
    MAGIC_GPFS = 0x47504653,
};

static bool is_memory(long type)
{
    return (int)type == MAGIC_TMPFS || (int)type == MAGIC_RAMFS || (int)type == MAGIC_HUGETLBFS;
}

/* The line of /proc/self/mountinfo of the mount that an open file is on; the caller frees it. NULL if unknown. */
static char *mount_line(int fd)
{
    char name[64], *line = NULL;
    size_t room = 0;
    long wanted = -1, number;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    FILE *in = fopen(name, "r");
    while (in && wanted < 0 && getline(&line, &room, in) > 0)
        if (sscanf(line, "mnt_id: %ld", &number) == 1)
            wanted = number;
    if (in)
        fclose(in);
    in = wanted < 0 ? NULL : fopen("/proc/self/mountinfo", "r");
    bool found = false;
    while (in && !found && getline(&line, &room, in) > 0)
        found = sscanf(line, "%ld ", &number) == 1 && number == wanted;
    if (in)
        fclose(in);
    if (found)
        return line;
    free(line);
    return NULL;
}

/* Undoes the octal escapes of mountinfo, and overlayfs' own of comma and colon; ends the text at a bare comma. */
static void unescape_option(char *text)
{
    char *to = text;
    for (char *at = text; *at && *at != ',' && *at != ' ' && *at != '\n'; at++) {
        unsigned code;
        if (at[0] == '\\' && sscanf(at + 1, "%3o", &code) == 1) {
            at += 3;
            if (code == '\\' && (at[1] == ',' || at[1] == ':'))
                code = (unsigned char)*++at;
            *to++ = (char)code;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/*
 * Is the upper layer of an overlay in memory? Its folder tells; a container does not see it. Then a file that
 * has no map of extents tells: of the file systems that can be an upper layer, those on disks have one.
 */
static bool overlay_in_memory(int fd)
{
    struct statfs fs;
    char *line = mount_line(fd), *upper = line ? strstr(line, ",upperdir=") : NULL;
    bool seen = false, memory = false;
    if (upper) {
        upper += strlen(",upperdir=");
        unescape_option(upper);
        seen = upper[0] == '/' && statfs(upper, &fs) == 0;
        memory = seen && is_memory(fs.f_type);
    }
    free(line);
    if (seen)
        return memory;
    struct fiemap map = {.fm_length = FIEMAP_MAX_OFFSET};
    return ioctl(fd, FS_IOC_FIEMAP, &map) != 0 && errno == EOPNOTSUPP;
}

/* virtiofs has the number of FUSE; its server is outside this machine, like that of a network file system. */
static bool is_virtiofs(int fd)
{
    char *line = mount_line(fd);
    bool found = line && strstr(line, " - virtiofs ");
    free(line);
    return found;
}

enum caching filesystem_caching(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return CACHING_UNKNOWN;
    if (is_memory(fs.f_type))
        return CACHING_MEMORY;
    switch ((int)fs.f_type) {
    case MAGIC_EXT:
    case MAGIC_XFS:
    case MAGIC_BTRFS:
    case MAGIC_F2FS:
    case MAGIC_BCACHEFS:
    case MAGIC_JFS:
    case MAGIC_NILFS:
    case MAGIC_REISERFS:
    case MAGIC_MSDOS:
    case MAGIC_EXFAT:
    case MAGIC_NTFS:
    case MAGIC_EROFS:
    case MAGIC_SQUASHFS:
    case MAGIC_NFS:
    case MAGIC_LUSTRE:
    case MAGIC_CEPH:
    case MAGIC_SMB:
    case MAGIC_CIFS:
    case MAGIC_SMB2:
    case MAGIC_9P:
    case MAGIC_AFS:
    case MAGIC_BEEGFS:
    case MAGIC_GFS2:
    case MAGIC_OCFS2:
        return CACHING_PAGES;
    case MAGIC_OVERLAY:
        return overlay_in_memory(fd) ? CACHING_MEMORY : CACHING_BELOW;
    case MAGIC_AUFS:
        return CACHING_BELOW;
    case MAGIC_FUSE:
        return is_virtiofs(fd) ? CACHING_PAGES : CACHING_FUSE;
    case MAGIC_ECRYPTFS:
        return CACHING_ENCRYPTED;
    case MAGIC_ZFS:
    case MAGIC_GPFS:
        return CACHING_OWN;
    default:
        return CACHING_UNKNOWN;
    }
}

const char *filesystem_untold(enum caching caching)
{
    switch (caching) {
    case CACHING_FUSE:
        return "a FUSE server may keep the data in this node's memory";
    case CACHING_ENCRYPTED:
        return "eCryptfs keeps the encrypted data in the cache of the file system below it";
    case CACHING_OWN:
        return "the file system keeps the data in a cache of its own, not in the page cache";
    case CACHING_UNKNOWN:
        return "it is not known whether this file system keeps the data in the page cache";
    default:
        return NULL;
    }
}

bool filesystem_node_local(const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return false;
    switch ((int)fs.f_type) {
    case MAGIC_EXT:
    case MAGIC_XFS:
    case MAGIC_BTRFS:
    case MAGIC_F2FS:
    case MAGIC_OVERLAY:
    case MAGIC_ZFS:
        return true;
    default:
        return is_memory(fs.f_type);
    }
}
