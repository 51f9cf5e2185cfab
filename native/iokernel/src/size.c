#include "size.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* strtoll skips blanks and takes a sign; neither belongs in a size. */
static bool leading_digit(const char *text)
{
    return isdigit((unsigned char)text[0]);
}

bool size_parse(const char *text, int64_t *bytes)
{
    static const char suffixes[] = "kmgt";
    if (!leading_digit(text))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno)
        return false;
    if (*end) {
        const char *suffix = strchr(suffixes, tolower((unsigned char)*end));
        if (!suffix || end[1])
            return false;
        for (const char *s = suffixes; s <= suffix; s++)
            if (__builtin_mul_overflow(value, 1024LL, &value))
                return false;
    }
    *bytes = value;
    return true;
}

bool integer_parse(const char *text, int64_t least, int64_t most, int64_t *value)
{
    if (!leading_digit(text[0] == '-' ? text + 1 : text))
        return false;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end || number < least || number > most)
        return false;
    *value = number;
    return true;
}

bool number_parse(const char *text, double *value)
{
    if (!leading_digit(text) && text[0] != '.')
        return false;
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (errno || *end || end == text || !isfinite(number))
        return false;
    *value = number;
    return true;
}
