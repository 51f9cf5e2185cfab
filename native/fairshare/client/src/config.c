// The library's environment.
#define _GNU_SOURCE
#include "client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real.h"

struct config fs_config;

static bool unhex(const char *text, unsigned char *out, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        unsigned value = 0;
        for (int k = 0; k < 2; k++) {
            char c = text[2 * i + k];
            unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
                             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                    : 16;
            if (digit == 16) return false;
            value = value * 16 + digit;
        }
        out[i] = (unsigned char)value;
    }
    return true;
}

static void complain(const char *what) {
    fprintf(stderr, "fairshare client: %s; calls go to the ordinary file system\n", what);
}

// A ticket is a secret: others see a command's words, among them those by which a launcher passes an environment on.
static const char *ticket_in(const char *path, char *text, size_t size) {
    int fd = (int)REAL(open)(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return "?";
    ssize_t got = REAL(read)(fd, text, size - 1);
    REAL(close)(fd);
    text[got > 0 ? got : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    return *text ? text : "?";
}

void fs_read_environment(void) {
    const char *prefix = getenv("FAIRSHARE_PREFIX"), *server = getenv("FAIRSHARE_SERVER");
    const char *ticket = getenv("FAIRSHARE_TICKET"), *patience = getenv("FAIRSHARE_PATIENCE");
    if (!prefix || !server) return;
    size_t length = strlen(prefix);
    while (length > 1 && prefix[length - 1] == '/') length--;
    if (prefix[0] != '/' || length < 2 || length >= sizeof fs_config.prefix)
        return complain("FAIRSHARE_PREFIX is not an absolute path below the root");
    for (const char *at = server; *at;) {
        size_t one = strcspn(at, ",");
        if (one == 0 || one >= sizeof fs_config.server[0] || fs_config.servers == MOST_SERVERS)
            return complain("FAIRSHARE_SERVER is not a list of servers, with a comma between two");
        memcpy(fs_config.server[fs_config.servers++], at, one);
        at += one + (at[one] == ',');
    }
    if (fs_config.servers == 0) return;
    memcpy(fs_config.prefix, prefix, length);
    fs_config.prefix_len = length;
    const size_t bytes = FS_TICKET_BYTES + FS_PROOF_BYTES;
    char text[2 * (FS_TICKET_BYTES + FS_PROOF_BYTES) + 2];
    if (ticket && *ticket == '@') ticket = ticket_in(ticket + 1, text, sizeof text);
    if (ticket && *ticket) {
        if (strlen(ticket) != 2 * bytes || !unhex(ticket, fs_config.ticket, FS_TICKET_BYTES) ||
            !unhex(ticket + 2 * FS_TICKET_BYTES, fs_config.secret, FS_PROOF_BYTES))
            return complain("FAIRSHARE_TICKET is not a ticket, nor @ and a file that has one");
        fs_config.has_ticket = true;
    }
    fs_config.patience = patience ? (unsigned)strtoul(patience, NULL, 10) : 30;
    fs_config.on = true;
}
