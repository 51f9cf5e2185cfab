#include "stats.h"
#include "reasons.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct cv_stats cv_stats;

static int stats_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void cv_stats_begin(const char *path)
{
    int fd = stats_file(path);

    if (fd < 0)
        return;
    futimens(fd, NULL);
    close(fd);
}

void cv_stats_write(const char *path)
{
    char  *text = NULL;
    size_t length;
    FILE  *line = open_memstream(&text, &length);

    if (!line)
        return;
    fprintf(line, "{\"pid\": %ld", (long)getpid());
#define FIELD(name) fprintf(line, ", \"" #name "\": %lu", (unsigned long)atomic_load(&cv_stats.name));
    CV_STATS(FIELD)
#undef FIELD
    fputs(", \"reasons\": ", line);
    cv_reasons_write(line);
    fputs("}\n", line);
    int fd = fclose(line) ? -1 : stats_file(path);
    if (fd >= 0 && write(fd, text, length) != (ssize_t)length)
        fprintf(stderr, "cachevol: %s cannot be written\n", path);
    if (fd >= 0)
        close(fd);
    free(text);
}
