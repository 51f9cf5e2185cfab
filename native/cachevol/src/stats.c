#include "stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct cv_stats cv_stats;

void cv_stats_write(const char *path)
{
    char text[4096];
    int  length = snprintf(text, sizeof text, "{\"pid\": %ld", (long)getpid());

#define FIELD(name)                                                                                          \
    length += snprintf(text + length, sizeof text - (size_t)length, ", \"" #name "\": %lu",                  \
                       (unsigned long)atomic_load(&cv_stats.name));
    CV_STATS(FIELD)
#undef FIELD
    length += snprintf(text + length, sizeof text - (size_t)length, "}\n");
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (write(fd, text, (size_t)length) != length)
        fprintf(stderr, "cachevol: %s cannot be written\n", path);
    close(fd);
}
