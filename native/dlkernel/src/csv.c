/* CSV of plain numbers, without quotes: every number is parsed, every row must have as many as the first. */
#include "dlkernel.h"

#include <stdlib.h>

static int number(struct dlkernel_csv *s)
{
    char *end;
    if (!s->have)
        return 0;
    s->word[s->have] = 0;
    s->sum += strtof(s->word, &end);
    if (*end)
        return 0;
    s->have = 0;
    s->values++;
    return 1;
}

static int row(struct dlkernel_csv *s)
{
    if (!number(s))
        return DLKERNEL_CSV_NO_NUMBER;
    if (!s->rows)
        s->columns = s->values;
    if (s->values != s->columns)
        return DLKERNEL_CSV_COLUMNS;
    s->values = 0;
    s->rows++;
    return DLKERNEL_CSV_SOUND;
}

int dlkernel_csv_feed(struct dlkernel_csv *s, const char *bytes, size_t size, int last)
{
    for (; size; bytes++, size--) {
        char c = *bytes;
        if (c == ',') {
            if (!number(s))
                return DLKERNEL_CSV_NO_NUMBER;
        } else if (c == '\n') {
            int problem = row(s);
            if (problem)
                return problem;
        } else if (c != '\r') {
            if (s->have + 1 >= sizeof s->word)
                return DLKERNEL_CSV_NO_NUMBER;
            s->word[s->have++] = c;
        }
    }
    return last && (s->have || s->values) ? row(s) : DLKERNEL_CSV_SOUND;
}
