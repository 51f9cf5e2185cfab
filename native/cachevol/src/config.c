#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct cv_config cv_config;

#define GIB (UINT64_C(1) << 30)

static const struct cv_config defaults = {
    .write_buffer = 4 * GIB, .fusion = GIB / 64, .read_buffer = GIB / 16, .adaptive = true, .replay = true,
    .checkpoint = true, .quiet = UINT64_C(2000000000),
    .patience = UINT64_C(50000000),
};

static bool truth(const char *text, bool *value)
{
    static const char *yes[] = {"yes", "true", "on", "1", "y"}, *no[] = {"no", "false", "off", "0", "n", ""};

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!strcasecmp(text, yes[i]))
            return *value = true;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (!strcasecmp(text, no[i])) {
            *value = false;
            return true;
        }
    return false;
}

/* A number of bytes, plain or as 512MiB, 4G (powers of 1024). */
static bool bytes(const char *text, uint64_t *value)
{
    char  *end;
    double number = strtod(text, &end);
    int    power  = 0;

    if (end == text || !(number >= 0) || number > 9e18)
        return false;
    if (*end) {
        const char *letters = "kmgtp", *letter = strchr(letters, tolower((unsigned char)*end));
        if (!letter)
            return false;
        power = 10 * (int)(letter - letters + 1);
        end++;
        if (!strcasecmp(end, "ib") || !strcasecmp(end, "b"))
            end += strlen(end);
    }
    number = ldexp(number, power);
    if (*end || number > 9e18)
        return false;
    *value = (uint64_t)number;
    return true;
}

static bool seconds(const char *text, uint64_t *value)
{
    char  *end;
    double number = strtod(text, &end);

    if (end == text || *end || !(number >= 0) || number > 1e9)
        return false;
    *value = (uint64_t)(number * 1e9);
    return true;
}

static bool path(const char *text, char *value)
{
    if (strlen(text) >= PATH_MAX)
        return false;
    strcpy(value, text);
    return true;
}

static bool policy(const char *text, enum cv_policy *value)
{
    static const char *names[] = {"LRU", "LFU", "FIFO"};

    for (int i = 0; i < 3; i++)
        if (!strcasecmp(text, names[i])) {
            *value = (enum cv_policy)i;
            return true;
        }
    return false;
}

static bool scope(const char *text, bool *global)
{
    *global = !strcasecmp(text, "GLOBAL");
    return *global || !strcasecmp(text, "LOCAL");
}

/* 1: taken; 0: no such name; -1: no such value. */
static int set(struct cv_config *c, const char *name, const char *text)
{
#define SETTING(key, good)                                                                                   \
    if (!strcmp(name, key))                                                                                  \
        return (good) ? 1 : -1;
    SETTING("HDF5_CACHE_WR", truth(text, &c->write))
    SETTING("HDF5_CACHE_RD", truth(text, &c->read))
    SETTING("HDF5_CACHE_STORAGE_PATH", path(text, c->path))
    SETTING("HDF5_CACHE_STORAGE_SIZE", bytes(text, &c->size))
    SETTING("HDF5_CACHE_STORAGE_SCOPE", scope(text, &c->global))
    SETTING("HDF5_CACHE_STORAGE_TYPE", true) /* the original's kinds of node-local storage: all are files here */
    SETTING("HDF5_CACHE_WRITE_BUFFER_SIZE", bytes(text, &c->write_buffer))
    SETTING("HDF5_CACHE_FUSION_THRESHOLD", bytes(text, &c->fusion))
    SETTING("HDF5_CACHE_REPLACEMENT_POLICY", policy(text, &c->policy))
    SETTING("HDF5_CACHE_READ_BUFFER_SIZE", bytes(text, &c->read_buffer))
    SETTING("HDF5_CACHE_PREFETCH", truth(text, &c->prefetch))
    SETTING("HDF5_CACHE_ADAPTIVE", truth(text, &c->adaptive))
    SETTING("HDF5_CACHE_REPLAY", truth(text, &c->replay))
    SETTING("HDF5_CACHE_CHECKPOINT", truth(text, &c->checkpoint))
    SETTING("HDF5_CACHE_QUIET", seconds(text, &c->quiet))
    SETTING("HDF5_CACHE_RECHECK", seconds(text, &c->recheck))
    SETTING("HDF5_CACHE_PATIENCE", seconds(text, &c->patience))
    SETTING("HDF5_CACHE_INDEPENDENT", truth(text, &c->independent))
    SETTING("HDF5_CACHE_STATS", path(text, c->stats))
#undef SETTING
    return 0;
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    return text;
}

static int from_file(struct cv_config *c, const char *file, char *why, size_t room)
{
    char  line[PATH_MAX + 128];
    FILE *lines = fopen(file, "re");
    int   bad   = 0;

    if (!lines) {
        snprintf(why, room, "%s: %s", file, strerror(errno));
        return -1;
    }
    for (int number = 1; !bad && fgets(line, sizeof line, lines); number++) {
        line[strcspn(line, "#\n")] = '\0';
        char *name = trimmed(line), *value = strpbrk(name, ":=");
        if (!*name)
            continue;
        if (value)
            *value++ = '\0';
        name = trimmed(name);
        int taken = value ? set(c, name, trimmed(value)) : -1;
        /* A name of some other release of the original is no reason to fail. */
        if (taken < 0) {
            snprintf(why, room, "%s:%d: %s has no usable value", file, number, name);
            bad = -1;
        }
    }
    fclose(lines);
    return bad;
}

extern char **environ;

int cv_config_load(const char *file, char *why, size_t room)
{
    struct cv_config c = defaults;

    *why = '\0';
    if (file && from_file(&c, file, why, room))
        return -1;
    for (char **each = environ; each && *each; each++) {
        char        name[64];
        const char *equals = strchr(*each, '=');
        if (strncmp(*each, "HDF5_CACHE_", 11) || !equals || equals - *each >= (long)sizeof name)
            continue;
        memcpy(name, *each, (size_t)(equals - *each));
        name[equals - *each] = '\0';
        if (set(&c, name, equals + 1) < 0) {
            snprintf(why, room, "the environment variable %s=%s is of no use", name, equals + 1);
            return -1;
        }
    }
    if (c.fusion < (1 << 16))
        c.fusion = 1 << 16;
    cv_config = c;
    return 0;
}
