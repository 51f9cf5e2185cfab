#include "failure.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "comm.h"
#include "json.h"

static volatile sig_atomic_t stop_signal;

static void on_stop(int number)
{
    stop_signal = number;
}

int stop_requested(void)
{
    return stop_signal;
}

void stop_on_signals(void)
{
    /* no SA_RESTART: a blocking call shall return and see the request */
    struct sigaction action = {.sa_handler = on_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* Keeps one message one line: control characters in a path or an argument become '?'. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

void failure_note(struct failure *f, const char *operation, const char *path, int error, const char *format, ...)
{
    if (f->set)
        return;
    f->set = true;
    f->error = error;
    snprintf(f->operation, sizeof f->operation, "%s", operation);
    snprintf(f->path, sizeof f->path, "%s", path ? path : "");
    if (format) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(f->message, sizeof f->message, format, arguments);
        va_end(arguments);
    } else {
        snprintf(f->message, sizeof f->message, "%s", strerror(error));
    }
}

bool failure_agree(struct failure *f, const struct comm *c, const char *phase)
{
    if (stop_signal && !f->set) {
        failure_note(f, "stop", NULL, 0, "stopped by signal %d", (int)stop_signal);
        f->signal = stop_signal;
    }
    if (f->set && !f->phase[0]) {
        f->rank = c->rank;
        snprintf(f->host, sizeof f->host, "%s", c->host);
        snprintf(f->phase, sizeof f->phase, "%s", phase);
    }
    int64_t first = f->set ? c->rank : INT64_MAX;
    comm_reduce_int(c, &first, 1, REDUCE_MIN);
    if (first == INT64_MAX)
        return false;
    comm_bcast(c, f, sizeof *f, (int)first);
    return true;
}

int failure_status(const struct failure *f)
{
    if (!f->set)
        return EXIT_DONE;
    return f->signal ? 128 + f->signal : EXIT_FAILED;
}

void failure_print(const struct failure *f)
{
    char line[sizeof f->path + sizeof f->message + 512];
    snprintf(line, sizeof line, "iokernel: rank %d on %s: %s%s%s%s%s: %s", f->rank, f->host, f->phase,
             f->phase[0] ? ": " : "", f->operation, f->path[0] ? " " : "", f->path, f->message);
    one_line(line);
    fprintf(stderr, "%s\n", line);
}

void failure_json(const struct failure *f, struct json *j, const char *key)
{
    if (!f->set) {
        json_null(j, key);
        return;
    }
    json_object(j, key);
    json_int(j, "rank", f->rank);
    json_string(j, "host", f->host);
    json_string(j, "phase", f->phase);
    json_string(j, "operation", f->operation);
    json_string(j, "path", f->path[0] ? f->path : NULL);
    json_int(j, "errno", f->error);
    json_int(j, "signal", f->signal);
    json_string(j, "message", f->message);
    json_object_end(j);
}

int usage_error(bool report, const char *what, const char *format, ...)
{
    char explanation[1024], line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(explanation, sizeof explanation, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "iokernel: %s: %s", what, explanation);
    one_line(line);
    if (report)
        fprintf(stderr, "%s\n", line);
    return EXIT_USAGE;
}

int error_in_words(const char *text)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, ENOENT, EISDIR, EROFS, ESTALE, EMFILE, EIO};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strstr(text, strerror(errors[i])))
            return errors[i];
    return 0;
}
