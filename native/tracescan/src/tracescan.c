#include "tracescan.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MISSING INT64_MIN
#define MAX_DEPTH 900    /* Python's parser gives up at about the same depth */
#define MAX_DIGITS 4300  /* and refuses longer whole numbers */

/* ---- growing arrays ---------------------------------------------------------------------------------- */

typedef struct {
    char *bytes;
    size_t used, room;
    int64_t *ends;
    size_t count, ends_room;
} wordlist;

static int add_word(wordlist *w, const char *text, size_t length) {
    if (w->used + length > w->room) {
        size_t room = (w->used + length) * 2 + 4096;
        char *bytes = realloc(w->bytes, room);
        if (!bytes) return -1;
        w->bytes = bytes;
        w->room = room;
    }
    if (w->count == w->ends_room) {
        size_t room = w->ends_room * 2 + 256;
        int64_t *ends = realloc(w->ends, room * sizeof *ends);
        if (!ends) return -1;
        w->ends = ends;
        w->ends_room = room;
    }
    if (length) memcpy(w->bytes + w->used, text, length);
    w->used += length;
    w->ends[w->count++] = (int64_t)w->used;
    return 0;
}

/* Most words are short: a call of memcmp takes longer than comparing them. */
static int same_bytes(const char *a, const char *b, size_t length) {
    uint64_t x, y;
    if (length < 8) {
        while (length && *a == *b) a++, b++, length--;
        return !length;
    }
    for (size_t at = 0; at + 8 < length; at += 8) {
        memcpy(&x, a + at, 8);
        memcpy(&y, b + at, 8);
        if (x != y) return 0;
    }
    memcpy(&x, a + length - 8, 8); /* the last eight, which may overlap those before */
    memcpy(&y, b + length - 8, 8);
    return x == y;
}

static const char *word_at(const wordlist *w, size_t code, size_t *length) {
    size_t begin = code ? (size_t)w->ends[code - 1] : 0;
    *length = (size_t)w->ends[code] - begin;
    return w->bytes + begin;
}

static uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    return h;
}

static uint64_t hash_bytes(const char *text, size_t length) {
    uint64_t h = length * 0x9e3779b97f4a7c15u, piece;
    while (length >= 8) {
        memcpy(&piece, text, 8);
        h = mix(h ^ piece) * 0x9e3779b97f4a7c15u;
        text += 8;
        length -= 8;
    }
    piece = 0;
    memcpy(&piece, text, length);
    return mix(h ^ piece);
}

/* ---- words to codes ---------------------------------------------------------------------------------- */

typedef struct {
    uint64_t hash;
    int64_t code; /* -1: free */
} slot;

typedef struct {
    wordlist words;
    slot *slots;
    size_t mask; /* slots - 1 */
    int64_t last; /* code of the last word asked for: most often the next one too */
} table;

static int grow_table(table *t) {
    size_t slots = t->slots ? (t->mask + 1) * 2 : 1024;
    slot *fresh = malloc(slots * sizeof *fresh);
    if (!fresh) return -1;
    for (size_t i = 0; i < slots; i++) fresh[i].code = -1;
    if (t->slots) {
        for (size_t i = 0; i <= t->mask; i++) {
            if (t->slots[i].code < 0) continue;
            size_t at = t->slots[i].hash & (slots - 1);
            while (fresh[at].code >= 0) at = (at + 1) & (slots - 1);
            fresh[at] = t->slots[i];
        }
    }
    free(t->slots);
    t->slots = fresh;
    t->mask = slots - 1;
    return 0;
}

/* Returns the code of a word, -1 for an empty one, -2 when memory runs out. */
static int64_t code_of(table *t, const char *text, size_t length) {
    if (!length) return -1;
    size_t there;
    if (t->last >= 0) {
        const char *word = word_at(&t->words, (size_t)t->last, &there);
        if (there == length && same_bytes(word, text, length)) return t->last;
    }
    if ((!t->slots || t->words.count * 2 > t->mask) && grow_table(t)) return -2;
    uint64_t hash = hash_bytes(text, length);
    size_t at = hash & t->mask;
    while (t->slots[at].code >= 0) {
        if (t->slots[at].hash == hash) {
            const char *word = word_at(&t->words, (size_t)t->slots[at].code, &there);
            if (there == length && same_bytes(word, text, length)) return t->last = t->slots[at].code;
        }
        at = (at + 1) & t->mask;
    }
    if (add_word(&t->words, text, length)) return -2;
    t->slots[at].hash = hash;
    t->slots[at].code = (int64_t)t->words.count - 1;
    return t->last = t->slots[at].code;
}

/* ---- positions of open files ------------------------------------------------------------------------- */

typedef struct {
    int64_t pid, thread, what, id; /* what: 0 a file, 1 a descriptor, -1 a free slot */
    int64_t position;
} open_file;

typedef struct {
    open_file *slots;
    size_t count, mask;
} positions;

static size_t place(const positions *p, const open_file *key) {
    uint64_t h = mix((uint64_t)key->pid * 0x9e3779b97f4a7c15u ^ (uint64_t)key->id);
    h = mix(h ^ (uint64_t)key->thread * 0xc2b2ae3d27d4eb4fu ^ (uint64_t)key->what);
    size_t at = h & p->mask;
    while (p->slots[at].what >= 0) {
        const open_file *f = &p->slots[at];
        if (f->id == key->id && f->pid == key->pid && f->thread == key->thread && f->what == key->what) break;
        at = (at + 1) & p->mask;
    }
    return at;
}

static int grow_positions(positions *p) {
    positions fresh = {NULL, p->count, (p->slots ? (p->mask + 1) * 2 : 1024) - 1};
    fresh.slots = malloc((fresh.mask + 1) * sizeof *fresh.slots);
    if (!fresh.slots) return -1;
    for (size_t i = 0; i <= fresh.mask; i++) fresh.slots[i].what = -1;
    if (p->slots)
        for (size_t i = 0; i <= p->mask; i++)
            if (p->slots[i].what >= 0) fresh.slots[place(&fresh, &p->slots[i])] = p->slots[i];
    free(p->slots);
    *p = fresh;
    return 0;
}

/* Returns the slot of a file, made if there is none; NULL when memory runs out. */
static int64_t *position_of(positions *p, open_file key) {
    if ((!p->slots || p->count * 2 > p->mask) && grow_positions(p)) return NULL;
    size_t at = place(p, &key);
    if (p->slots[at].what < 0) {
        key.position = MISSING;
        p->slots[at] = key;
        p->count++;
    }
    return &p->slots[at].position;
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

typedef enum { ABSENT, BAD, TEXT, WHOLE } value_kind; /* BAD: null, true, a fraction, a list... */

typedef struct {
    value_kind kind;
    const char *text; /* of a string without its quotes, or of a number */
    size_t length;
    int64_t whole; /* of WHOLE: its value; MISSING where it needs more than 63 bits */
} value;

typedef struct {
    const char *at, *end;
    const char *readable; /* the end of the block: what lies behind the line's end may be read, too */
} cursor;

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r')) c->at++;
}

static int is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Returns where the next quote or backslash is, or `end`: sixteen bytes at a time where the processor has SSE2,
 * else eight (Hacker's Delight, 6-1). */
static const char *next_special(const char *p, const char *end, const char *readable) {
#ifdef __SSE2__
    const __m128i quotes = _mm_set1_epi8('"'), escapes = _mm_set1_epi8('\\');
    while (readable - p >= 16) {
        __m128i piece = _mm_loadu_si128((const void *)p);
        int hits = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(piece, quotes), _mm_cmpeq_epi8(piece, escapes)));
        p += hits ? __builtin_ctz((unsigned)hits) : 16;
        if (p >= end) return end;
        if (hits) return p;
    }
#else
    (void)readable;
#endif
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    while (end - p >= 8) {
        uint64_t eight;
        memcpy(&eight, p, 8);
        uint64_t quote = eight ^ (ones * '"'), escape = eight ^ (ones * '\\');
        uint64_t found = (((quote - ones) & ~quote) | ((escape - ones) & ~escape)) & high;
        if (found) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return p + __builtin_ctzll(found) / 8;
#else
            break;
#endif
        }
        p += 8;
    }
    while (p < end && *p != '"' && *p != '\\') p++;
    return p;
}

/* At the opening quote; leaves the cursor behind the closing one. */
static int read_string(cursor *c, value *v) {
    const char *p = c->at + 1, *end = c->end;
    v->kind = TEXT;
    v->text = p;
    for (;; p++) {
        p = next_special(p, end, c->readable);
        if (p == end) return -1;
        if (*p == '"') {
            v->length = (size_t)(p - v->text);
            c->at = p + 1;
            return 0;
        }
        if (++p == end) return -1;
        if (*p == 'u') {
            if (end - p < 5 || !is_hex(p[1]) || !is_hex(p[2]) || !is_hex(p[3]) || !is_hex(p[4])) return -1;
            p += 4;
        } else if (!strchr("\"\\/bfnrt", *p) || !*p) {
            return -1;
        }
    }
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The whole number that a text is; MISSING where it is none, or needs more than 63 bits. */
static int64_t parsed(const char *text, size_t length) {
    const char *p = text, *end = p + length;
    int negative = p < end && *p == '-';
    uint64_t n = 0;
    p += negative;
    if (p == end) return MISSING;
    for (; p < end; p++) {
        if (!is_digit(*p)) return MISSING;
        unsigned digit = (unsigned)(*p - '0');
        if (n > ((uint64_t)INT64_MAX - digit) / 10) return MISSING;
        n = n * 10 + digit;
    }
    return negative ? -(int64_t)n : (int64_t)n;
}

static int read_number(cursor *c, value *v) {
    const char *p = c->at, *end = c->end;
    v->kind = WHOLE;
    v->text = p;
    if (*p == '-') p++;
    const char *digits = p;
    uint64_t n = 0;
    for (; p < end && is_digit(*p); p++) n = n * 10 + (unsigned)(*p - '0');
    v->whole = p - digits > 18 ? parsed(v->text, (size_t)(p - v->text)) : p - digits == p - v->text ? (int64_t)n : -(int64_t)n;
    if (p == digits || (*digits == '0' && p - digits > 1)) return -1;
    if (p - digits > MAX_DIGITS) return -1;
    if (p < end && *p == '.') {
        const char *after = ++p;
        while (p < end && is_digit(*p)) p++;
        if (p == after) return -1;
        v->kind = BAD;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        const char *after = p;
        while (p < end && is_digit(*p)) p++;
        if (p == after) return -1;
        v->kind = BAD;
    }
    v->length = (size_t)(p - v->text);
    if (v->length == 2 && v->text[0] == '-' && v->text[1] == '0') v->text++, v->length--; /* Python's -0 is 0 */
    c->at = p;
    return 0;
}

static int read_word(cursor *c, value *v, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length)) return -1;
    c->at += length;
    v->kind = BAD;
    return 0;
}

static int read_value(cursor *c, value *v, int depth);

/* At the opening bracket of an object or a list; checks and skips it. */
static int skip_nested(cursor *c, int depth) {
    char close = *c->at == '{' ? '}' : ']';
    value ignored;
    if (depth > MAX_DEPTH) return -1;
    c->at++;
    skip_blanks(c);
    if (c->at < c->end && *c->at == close) {
        c->at++;
        return 0;
    }
    for (;;) {
        if (close == '}') {
            skip_blanks(c);
            if (c->at == c->end || *c->at != '"' || read_string(c, &ignored)) return -1;
            skip_blanks(c);
            if (c->at == c->end || *c->at++ != ':') return -1;
        }
        if (read_value(c, &ignored, depth + 1)) return -1;
        skip_blanks(c);
        if (c->at == c->end) return -1;
        if (*c->at == close) {
            c->at++;
            return 0;
        }
        if (*c->at++ != ',') return -1;
    }
}

static int read_value(cursor *c, value *v, int depth) {
    skip_blanks(c);
    if (c->at == c->end) return -1;
    switch (*c->at) {
    case '"': return read_string(c, v);
    case '{':
    case '[': v->kind = BAD; return skip_nested(c, depth);
    case 't': return read_word(c, v, "true");
    case 'f': return read_word(c, v, "false");
    case 'n': return read_word(c, v, "null");
    default: return *c->at == '-' || is_digit(*c->at) ? read_number(c, v) : -1;
    }
}

/* A whole number, also one written as text; MISSING for everything else and what needs more than 63 bits. */
static int64_t number(const value *v) {
    return v->kind == WHOLE ? v->whole : v->kind == TEXT ? parsed(v->text, v->length) : MISSING;
}

/* ---- lines ------------------------------------------------------------------------------------------- */

enum { E_NAME, E_CAT, E_PID, E_TID, E_TS, E_DUR, E_PH, E_KEYS };
enum {
    A_HHASH, A_HOSTNAME, A_FHASH, A_FNAME, A_RET, A_OFFSET, A_COUNT, A_SIZE, A_WHENCE, A_FLAGS, A_FD, A_EPOCH,
    A_STEP, A_NAME, A_VALUE, A_KEYS
};
typedef struct {
    const char *name;
    size_t length;
} word;
#define WORD(text) {text, sizeof text - 1}
static const word EVENT_KEYS[E_KEYS] = {
    WORD("name"), WORD("cat"), WORD("pid"), WORD("tid"), WORD("ts"), WORD("dur"), WORD("ph")};
static const word ARGUMENT_KEYS[A_KEYS] = {WORD("hhash"), WORD("hostname"), WORD("fhash"), WORD("fname"), WORD("ret"),
    WORD("offset"), WORD("count"), WORD("size"), WORD("whence"), WORD("flags"), WORD("fd"), WORD("epoch"),
    WORD("step"), WORD("name"), WORD("value")};

/* The keys of the last object of this level, in order: most lines repeat the keys of the one before, and a
 * comparison of `"key":` is quicker than reading and looking up a word. */
#define SHAPE 16
#define KEY 16 /* longest `"key":` that is remembered */
typedef struct {
    struct {
        uint64_t text[2], mask[2]; /* the key's bytes, and which of the 16 they are */
        size_t length;
        int which;
    } keys[SHAPE];
    int count;
} shape;

struct scanner {
    shape event_shape, argument_shape;
    table tables[TABLES];
    struct {
        wordlist words;
        int64_t *numbers;
        size_t room;
    } notes[NOTES];
    int64_t metadata;
    positions positions;
    int64_t *columns[COLUMNS];
    size_t rows, room;
};

static int find_key(const value *key, const word *keys, int count) {
    for (int i = 0; i < count; i++)
        if (keys[i].length == key->length && keys[i].name[0] == key->text[0] &&
            !memcmp(keys[i].name, key->text, key->length))
            return i;
    return -1;
}

#define ARGS_KEY (-2) /* the key "args" of an event */

/* Reads a key and its colon; returns which of `keys` it is, -1 for another one, ARGS_KEY; -3 when it is broken. */
static int read_key(cursor *c, const word *keys, int count, int has_args, shape *known, int number) {
    if (number < known->count && c->readable - c->at >= KEY) {
        uint64_t text[2], other = 0;
        memcpy(text, c->at, KEY);
        for (int i = 0; i < 2; i++) other |= (text[i] ^ known->keys[number].text[i]) & known->keys[number].mask[i];
        if (!other) { /* it lies in the line: a key has no newline, and ends with what no line's end loses */
            c->at += known->keys[number].length;
            return known->keys[number].which;
        }
    }
    const char *begin = c->at;
    value key;
    if (c->at == c->end || *c->at != '"' || read_string(c, &key)) return -3;
    skip_blanks(c);
    if (c->at == c->end || *c->at++ != ':') return -3;
    int which = -1;
    if (has_args && key.length == 4 && !memcmp(key.text, "args", 4)) which = ARGS_KEY;
    else if (key.length) which = find_key(&key, keys, count);
    size_t length = (size_t)(c->at - begin);
    if (number < SHAPE && number <= known->count && length <= KEY) {
        memset(known->keys[number].text, 0, KEY);
        memset(known->keys[number].mask, 0, KEY);
        memcpy(known->keys[number].text, begin, length);
        memset(known->keys[number].mask, 0xff, length);
        known->keys[number].length = length;
        known->keys[number].which = which;
        if (number == known->count) known->count++;
    }
    return which;
}

/* At the opening brace; fills the values of the keys that count. `inner` takes those of "args". */
static int read_object(scanner *s, cursor *c, const word *keys, int count, value *found, value *inner, int depth) {
    shape *known = inner ? &s->event_shape : &s->argument_shape;
    value ignored;
    for (int i = 0; i < count; i++) found[i].kind = ABSENT;
    c->at++;
    skip_blanks(c);
    if (c->at < c->end && *c->at == '}') {
        c->at++;
        return 0;
    }
    for (int number = 0;; number++) {
        skip_blanks(c);
        int which = read_key(c, keys, count, inner != NULL, known, number);
        if (which == -3) return -1;
        if (which == ARGS_KEY) {
            skip_blanks(c);
            for (int i = 0; i < A_KEYS; i++) inner[i].kind = ABSENT;
            if (c->at < c->end && *c->at == '{') {
                if (read_object(s, c, ARGUMENT_KEYS, A_KEYS, inner, NULL, depth + 1)) return -1;
            } else if (read_value(c, &ignored, depth + 1)) {
                return -1;
            }
        } else if (read_value(c, which < 0 ? &ignored : &found[which], depth + 1)) {
            return -1;
        }
        skip_blanks(c);
        if (c->at == c->end) return -1;
        if (*c->at == '}') {
            c->at++;
            return 0;
        }
        if (*c->at++ != ',') return -1;
    }
}

static int is_text(const value *v, char letter, char digit) {
    return (v->kind == TEXT || v->kind == WHOLE) && v->length == 1 &&
           (v->text[0] == digit || (v->kind == TEXT && v->text[0] == letter));
}

static int is_word(const value *v) { return v->kind == TEXT || v->kind == WHOLE; }

static int grow_columns(scanner *s) {
    size_t room = s->room * 2 + 16384;
    for (int i = 0; i < COLUMNS; i++) {
        int64_t *column = realloc(s->columns[i], room * sizeof *column);
        if (!column) return -1;
        s->columns[i] = column;
    }
    s->room = room;
    return 0;
}

enum { LINE_READ, LINE_LOST, LINE_OTHER, NO_MEMORY };

static int read_event(scanner *s, const value *event, const value *args) {
    int64_t ts = number(&event[E_TS]), dur = number(&event[E_DUR]);
    if (ts < 0) return LINE_LOST; /* MISSING is negative */
    if (dur < 0) dur = MISSING;
    const value *host = &args[args[A_HHASH].kind != ABSENT ? A_HHASH : A_HOSTNAME];
    const value *file = &args[args[A_FHASH].kind != ABSENT ? A_FHASH : A_FNAME];
    const value *words[TABLES] = {&event[E_NAME], &event[E_CAT], host, file};
    for (int i = 0; i < TABLES; i++)
        if (words[i]->kind == BAD) return LINE_LOST;
    if (s->rows == s->room && grow_columns(s)) return NO_MEMORY;
    size_t row = s->rows;
    for (int i = 0; i < TABLES; i++) {
        int64_t code = words[i]->kind == ABSENT ? -1 : code_of(&s->tables[i], words[i]->text, words[i]->length);
        if (code == -2) return NO_MEMORY;
        s->columns[COL_NAME + i][row] = code;
    }
    s->columns[COL_TS][row] = ts;
    s->columns[COL_DUR][row] = dur;
    s->columns[COL_PID][row] = number(&event[E_PID]);
    s->columns[COL_TID][row] = number(&event[E_TID]);
    for (int i = 0; i < COL_TEXTUAL - COL_RET; i++) s->columns[COL_RET + i][row] = number(&args[A_RET + i]);
    s->columns[COL_TEXTUAL][row] = event[E_TS].kind == TEXT;
    s->rows++;
    return LINE_READ;
}

static int add_metadata(scanner *s, const value *event, const value *args) {
    const value *words[3] = {&event[E_NAME], &args[A_VALUE], &args[A_NAME]};
    for (int i = 0; i < 3; i++)
        if (words[i]->kind == BAD) return LINE_LOST;
    s->metadata++;
    const char *name = words[0]->text;
    if (words[0]->length != 2 || name[1] != 'H') return LINE_READ;
    int which = name[0] == 'H' ? NOTE_HOST : name[0] == 'F' ? NOTE_FILE : name[0] == 'S' ? NOTE_TEXT : NOTES;
    if (which == NOTES) return LINE_READ;
    wordlist *list = &s->notes[which].words;
    if (list->count == s->notes[which].room) {
        size_t room = s->notes[which].room * 2 + 256;
        int64_t *numbers = realloc(s->notes[which].numbers, room * sizeof *numbers);
        if (!numbers) return NO_MEMORY;
        s->notes[which].numbers = numbers;
        s->notes[which].room = room;
    }
    s->notes[which].numbers[list->count] = number(&event[E_PID]);
    s->notes[which].numbers[list->count + 1] = (int64_t)s->rows;
    for (int i = 1; i < 3; i++)
        if (add_word(list, words[i]->text, words[i]->kind == ABSENT ? 0 : words[i]->length)) return NO_MEMORY;
    return LINE_READ;
}

static int read_line(scanner *s, const char *begin, const char *end, const char *readable) {
    value event[E_KEYS], args[A_KEYS];
    cursor c = {begin, end, readable};
    if (*begin != '{') return LINE_LOST;
    for (int i = 0; i < A_KEYS; i++) args[i].kind = ABSENT;
    if (read_object(s, &c, EVENT_KEYS, E_KEYS, event, args, 0)) return LINE_LOST;
    if (c.at != end || event[E_PH].kind == ABSENT || !is_word(&event[E_NAME])) return LINE_LOST;
    if (is_text(&event[E_PH], 'X', '1')) return event[E_TS].kind == ABSENT ? LINE_LOST : read_event(s, event, args);
    return is_text(&event[E_PH], 'M', '4') ? add_metadata(s, event, args) : LINE_OTHER;
}

static int is_padding(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\0' || c == ','; }

int tracescan_scan(scanner *s, const char *data, size_t length, scan_report *report) {
    const char *at = data, *end = data + length;
    memset(report, 0, sizeof *report);
    s->rows = 0;
    s->metadata = 0;
    for (int i = 0; i < NOTES; i++) s->notes[i].words.used = s->notes[i].words.count = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *begin = at, *close = stop ? stop : end;
        while (begin < close && (is_padding(*begin) || *begin == '[')) begin++;
        while (close > begin && (is_padding(close[-1]) || close[-1] == ']')) close--;
        int outcome = begin == close ? LINE_READ : read_line(s, begin, close, end);
        if (outcome == NO_MEMORY) return -1;
        if (outcome == LINE_OTHER) report->other_lines++;
        if (outcome == LINE_LOST) {
            report->lost_lines++;
            report->lost_bytes += (stop ? stop + 1 : end) - at;
            report->unfinished = !stop;
        }
        at = stop ? stop + 1 : end;
    }
    report->rows = (int64_t)s->rows;
    report->metadata = s->metadata;
    return 0;
}

/* ---- offsets ----------------------------------------------------------------------------------------- */

enum { ADVANCE = 1, POSITIONED, SEEK, STDIO_SEEK, OPEN, CLOSE, REWIND, FORGET };
#define APPEND 02000

/* Where a seek leads: what lseek returned, else what its arguments say. */
static int64_t sought(const scanner *s, size_t row, int64_t role, int64_t position) {
    int64_t ret = s->columns[COL_RET][row], offset = s->columns[COL_OFFSET][row];
    if (role == SEEK && ret != MISSING) return ret >= 0 ? ret : position;
    if (offset == MISSING) return MISSING;
    if (s->columns[COL_WHENCE][row] == 0) return offset;
    return s->columns[COL_WHENCE][row] == 1 && position != MISSING ? position + offset : MISSING;
}

static int track_row(scanner *s, size_t row, int64_t role, int64_t size, int64_t *offset) {
    int64_t fd = s->columns[COL_FD][row], ret = s->columns[COL_RET][row], flags = s->columns[COL_FLAGS][row];
    /* The oldest schema gives forked workers their parent's pid: only the thread tells them apart. */
    open_file key = {s->columns[COL_PID][row], s->columns[COL_TEXTUAL][row] ? s->columns[COL_TID][row] : MISSING,
        fd != MISSING, fd == MISSING ? s->columns[COL_FILE][row] : fd, MISSING};
    if (role == OPEN) {
        int64_t start = flags != MISSING && (flags & APPEND) ? MISSING : 0, *position;
        key.what = 0;
        key.id = s->columns[COL_FILE][row];
        if (!(position = position_of(&s->positions, key))) return -1;
        *position = start;
        if (ret < 0) return 0;
        key.what = 1;
        key.id = ret;
        if (!(position = position_of(&s->positions, key))) return -1;
        *position = start;
        return 0;
    }
    int64_t *position = position_of(&s->positions, key);
    if (!position) return -1;
    switch (role) {
    case ADVANCE:
        *offset = *position;
        if (*position != MISSING && size > 0) *position += size;
        break;
    case SEEK:
    case STDIO_SEEK: *position = sought(s, row, role, *position); break;
    case REWIND: *position = 0; break;
    default: *position = MISSING; break; /* CLOSE, FORGET */
    }
    return 0;
}

int tracescan_track(scanner *s, const int64_t *roles, int64_t role_count, const int64_t *sizes, int64_t *offsets) {
    for (size_t row = 0; row < s->rows; row++) {
        int64_t name = s->columns[COL_NAME][row], role = name >= 0 && name < role_count ? roles[name] : 0;
        offsets[row] = role == POSITIONED ? s->columns[COL_OFFSET][row] : MISSING;
        if (role && role != POSITIONED && track_row(s, row, role, sizes[row], &offsets[row])) return -1;
    }
    return 0;
}

/* ---- the rest of the interface ----------------------------------------------------------------------- */

int tracescan_abi(void) { return TRACESCAN_ABI; }

scanner *tracescan_new(void) {
    scanner *s = calloc(1, sizeof *s);
    if (s)
        for (int i = 0; i < TABLES; i++) s->tables[i].last = -1;
    return s;
}

void tracescan_free(scanner *s) {
    if (!s) return;
    for (int i = 0; i < TABLES; i++) {
        free(s->tables[i].words.bytes);
        free(s->tables[i].words.ends);
        free(s->tables[i].slots);
    }
    for (int i = 0; i < COLUMNS; i++) free(s->columns[i]);
    for (int i = 0; i < NOTES; i++) {
        free(s->notes[i].words.bytes);
        free(s->notes[i].words.ends);
        free(s->notes[i].numbers);
    }
    free(s->positions.slots);
    free(s);
}

const int64_t *tracescan_column(const scanner *s, int column) { return s->columns[column]; }

int64_t tracescan_words(const scanner *s, int which, const char **bytes, const int64_t **ends) {
    const wordlist *w = &s->tables[which].words;
    *bytes = w->bytes;
    *ends = w->ends;
    return (int64_t)w->count;
}

int64_t tracescan_notes(const scanner *s, int which, const char **bytes, const int64_t **ends, const int64_t **numbers) {
    *bytes = s->notes[which].words.bytes;
    *ends = s->notes[which].words.ends;
    *numbers = s->notes[which].numbers;
    return (int64_t)s->notes[which].words.count / 2;
}
