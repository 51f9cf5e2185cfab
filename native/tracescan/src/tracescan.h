/* tracescan: lines of a DFTracer trace to columns of 64-bit numbers.
 *
 * The same as tiercel.traces.readers.scan.PythonScanner, which says what each column means; a test compares
 * the two on whole and on damaged traces. One scanner serves one trace; it is not safe to share it between
 * threads. All memory that functions return belongs to the scanner and lasts until the next scan or free.
 */
#ifndef TRACESCAN_H
#define TRACESCAN_H

#include <stddef.h>
#include <stdint.h>

#define TRACESCAN_ABI 4

/* Columns and tables, in the order of scan.COLUMNS and scan.TABLES. */
enum {
    COL_TS, COL_DUR, COL_PID, COL_TID, COL_NAME, COL_CAT, COL_HOST, COL_FILE, COL_RET, COL_OFFSET, COL_COUNT,
    COL_ITEM_SIZE, COL_WHENCE, COL_FLAGS, COL_FD, COL_EPOCH, COL_STEP, COL_TEXTUAL, COLUMNS
};
enum { TABLE_NAME, TABLE_CAT, TABLE_HOST, TABLE_FILE, TABLES };
/* Metadata lines that say what a hash stands for, in the order of scan.NOTES. */
enum { NOTE_HOST, NOTE_FILE, NOTE_TEXT, NOTES };

typedef struct scanner scanner;

/* What one block of lines held beside its events. */
typedef struct {
    int64_t rows, metadata, lost_lines, lost_bytes, other_lines, unfinished;
} scan_report;

int tracescan_abi(void);
scanner *tracescan_new(void);
void tracescan_free(scanner *s);

/* Reads the lines of a block; returns 0, or -1 when memory runs out. */
int tracescan_scan(scanner *s, const char *data, size_t length, scan_report *report);

/* Column of the last block: report.rows numbers. */
const int64_t *tracescan_column(const scanner *s, int column);

/* Words of a table in order of their codes, one after the other, as they stand in the JSON (escapes kept);
 * ends[i] is where word i ends. */
int64_t tracescan_words(const scanner *s, int table, const char **bytes, const int64_t **ends);

/* Metadata lines of one of NOTES in the last block; returns how many. Two words for each in the same form, hash
 * and meaning, and two numbers: the process, and how many rows came before the line. */
int64_t tracescan_notes(const scanner *s, int which, const char **bytes, const int64_t **ends, const int64_t **numbers);

/* First bytes accessed, for the rows of the last block. roles has one number for each function code. */
int tracescan_track(scanner *s, const int64_t *roles, int64_t role_count, const int64_t *sizes, int64_t *offsets);

#endif
