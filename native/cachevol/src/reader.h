/* Reads of one base file that nobody writes, by way of its node-local copy where that helps. */
#ifndef CACHEVOL_READER_H
#define CACHEVOL_READER_H

#include "store.h"

struct cv_reader;
struct cv_copy;
struct cv_peers;

struct cv_reader *cv_reader_open(struct cv_store *store, const char *path, int base);
void              cv_reader_close(struct cv_reader *reader);

/* Its copy, made at once where the file allows it; else NULL. The neighbours that it then asks become the reader's. */
struct cv_copy *cv_reader_copy(struct cv_reader *reader);
void            cv_reader_share(struct cv_reader *reader, struct cv_peers *peers);
/* Waits until the neighbours can know what was read; does nothing without any. */
void            cv_reader_settle(struct cv_reader *reader);

/* As pread, until `size` bytes are there or the file ends. Returns bytes, or -1 with errno. */
ssize_t cv_reader_read(struct cv_reader *reader, void *data, uint64_t size, uint64_t address);

#endif
