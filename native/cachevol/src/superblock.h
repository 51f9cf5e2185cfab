/* The mark that HDF5 puts into files of its newest formats while they are open for writing. */
#ifndef CACHEVOL_SUPERBLOCK_H
#define CACHEVOL_SUPERBLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Whether these bytes are a superblock of a format that has the mark. */
bool cv_superblock_can_be_marked(const char *data, uint64_t size);

/* Takes the mark off a file that a killed program left whole, as `h5clear -s` does; files without it, and what is
   no sound superblock, stay as they are. Returns 0, or -1 with errno. */
int cv_superblock_release(int file);

#endif
