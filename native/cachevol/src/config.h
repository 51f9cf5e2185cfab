/* Settings, by the names of the original Cache VOL: from the file that `config=` names, then from the
   environment, which wins. One set for the process. */
#ifndef CACHEVOL_CONFIG_H
#define CACHEVOL_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cv_policy { CV_LRU, CV_LFU, CV_FIFO };

struct cv_config {
    bool           write, read;  /* HDF5_CACHE_WR, HDF5_CACHE_RD */
    char           path[PATH_MAX]; /* HDF5_CACHE_STORAGE_PATH */
    uint64_t       size;         /* HDF5_CACHE_STORAGE_SIZE, bytes; 0: half of what is free */
    bool           global;       /* HDF5_CACHE_STORAGE_SCOPE: GLOBAL where several nodes share the storage */
    uint64_t       write_buffer; /* HDF5_CACHE_WRITE_BUFFER_SIZE: most bytes staged for one file */
    uint64_t       fusion;       /* HDF5_CACHE_FUSION_THRESHOLD: most bytes in one write to the base file */
    enum cv_policy policy;       /* HDF5_CACHE_REPLACEMENT_POLICY: LRU, LFU or FIFO */
    /* Ours: */
    uint64_t       read_buffer;  /* HDF5_CACHE_READ_BUFFER_SIZE: most bytes of memory between a read and its copy */
    bool           prefetch;     /* HDF5_CACHE_PREFETCH: copy what nobody has read yet while nothing else is to do */
    bool           adaptive;     /* HDF5_CACHE_ADAPTIVE: go direct while the base storage is the faster one */
    bool           replay;       /* HDF5_CACHE_REPLAY: finish what a killed program left before opening a file */
    bool           checkpoint;   /* HDF5_CACHE_CHECKPOINT: log the file's metadata with the data */
    uint64_t       quiet;        /* HDF5_CACHE_QUIET, ns: how long a file must have been unchanged to be copied */
    uint64_t       recheck;      /* HDF5_CACHE_RECHECK, ns: how often an open file and its copy are checked for changes; 0: before each read */
    uint64_t       patience;     /* HDF5_CACHE_PATIENCE, ns: how long a process waits for another node's; 0: asks none */
    bool           independent;  /* HDF5_CACHE_INDEPENDENT: stage also what MPI processes write alone; they keep MPI's rule */
    char           stats[PATH_MAX]; /* HDF5_CACHE_STATS: file that gets a line of counts when the program ends */
};

extern struct cv_config cv_config;

/* Reads the settings. Returns 0, or -1 with a sentence that names the file or variable. */
int cv_config_load(const char *file, char *why, size_t room);

#endif
