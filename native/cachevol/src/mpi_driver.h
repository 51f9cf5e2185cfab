/* The file driver for a file that a program opens with HDF5's MPI driver, only to read: each process reads by itself,
   by way of its node's copy, so that what one process does never waits for what another one does. */
#ifndef CACHEVOL_MPI_DRIVER_H
#define CACHEVOL_MPI_DRIVER_H

#include "mpi_api.h"
#include "reader.h"

#include <sys/types.h>

/* A parallel file that this driver has open. */
struct cv_parallel {
    struct cv_reader   *reader; /* NULL where nothing is cached */
    cv_comm             comm;   /* the program's, a duplicate */
    cv_info             info;
    dev_t               device;
    ino_t               inode;
    uint64_t            number; /* names it in the process */
    void               *handle; /* MPI_File, once somebody asked for it */
    struct cv_parallel *next;
};

/* Puts this driver into an access list. */
int cv_mpi_driver_set(hid_t fapl);
bool cv_mpi_driver_is_ours(hid_t fapl);

/* Whether the file of this number, which HDF5 gave it, is open by this driver: also one that a link led to. */
bool cv_mpi_driver_has(unsigned long number);

/* While set, the next file that the driver opens is this one; the driver sets it to NULL when it has. */
extern struct cv_parallel *cv_parallel_opening;

/* The file that an access list which HDF5 made of an open file belongs to; NULL where it is no longer open. */
const struct cv_parallel *cv_parallel_of(hid_t fapl);

/* Waits until what was read of all of them so far can be known to the neighbours. */
void cv_parallel_settle(void);

/* Whether any file is open so; whether this very one still is. */
bool cv_parallel_any(void);
bool cv_parallel_still(const struct cv_parallel *parallel);

/* Whether this process has this file open by way of the driver. */
bool cv_parallel_reads(dev_t device, ino_t inode);

#endif
