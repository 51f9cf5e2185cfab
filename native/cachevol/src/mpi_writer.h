/* A file that the processes of a communicator write to with HDF5's MPI driver, in which data that they write together
   are staged by each on its node (which data: mpi_write.h).

   The file stays HDF5's own, with its driver; some methods are put in the place of that driver's (mpi_methods.h). While
   data are staged, those take what HDF5 writes. When it closes the file, all of it is brought there.

   What one process has staged, no other knows of. So all settle together before anything that HDF5 may do where those
   data lie: each brings its own to the file, and they wait for each other. Everything that makes it needed is a call
   that HDF5 wants from all processes, so that they do meet; calls that one process makes alone wait for the others'
   data by a counter that these expose in a window.

   With HDF5_CACHE_INDEPENDENT in all processes, also what one writes alone is staged. The program then keeps MPI's rule:
   bytes that one process wrote are not touched by another before all have flushed. So nobody need be told of them, but
   settling, by which a flush is one, must be done by all whether or not they staged something. */
#ifndef CACHEVOL_MPI_WRITER_H
#define CACHEVOL_MPI_WRITER_H

#include "mpi_api.h"
#include "mpi_areas.h"
#include "object.h"
#include "stage.h"

#define CV_VOTE_BYTES 88 /* of what each process says of a write */

struct cv_writer {
    H5FD_t          *file;
    struct cv_stage *stage;
    int              base; /* descriptor of the file, for the stage */
    char             path[PATH_MAX];
    dev_t            device;
    ino_t            inode;
    cv_comm          comm;
    int              rank, size;
    cv_win           window;
    _Atomic uint64_t *emptied; /* this process's words in it (see cv_stage_called) */
    uint64_t         calls, settled; /* collective writes that were staged; those of them that all have settled; */
    uint64_t         chunks; /* and the last one of compressed chunks, until they are in the file */
    int              lists;  /* CV_YES where this HDF5 writes compressed chunks as lists, which can be staged; */
    bool             learned; /* all processes know it */
    bool             off;    /* this process stages nothing more */
    bool             independent; /* what one writes alone is staged too, by all processes */
    struct cv_areas *areas;  /* where the data lie that are not settled; */
    void            *votes;  /* and room for what each process says of a write */
    struct cv_writer *next;
};

/* After a file was opened or created with the MPI driver for writing: all its processes agree whether they stage. `fapl`
   is the list that it was opened with, `stages` tells that this process wants to. */
void cv_writer_open(const char *name, void *under, hid_t vol, hid_t fapl, bool stages, hid_t dxpl);

/* Something of the file is not staged: the first process says so. */
void cv_writer_because(const struct cv_writer *writer, const char *why);

/* A writer begins; and ends, once its stage is closed. */
void cv_writer_add(struct cv_writer *writer);
void cv_writer_free(struct cv_writer *writer);

/* The number that HDF5 gave an open file; 0 where it does not tell. */
unsigned long cv_file_number(void *under, hid_t vol, hid_t dxpl);

/* The writer of the file in which an object lies, or NULL. */
struct cv_writer *cv_writer_of(struct cv_object *object, H5I_type_t type, hid_t dxpl);
struct cv_writer *cv_writer_of_file(struct cv_object *file, hid_t dxpl);
struct cv_writer *cv_writer_of_number(unsigned long number); /* that HDF5 gave the file */
struct cv_writer *cv_writer_of_driver(const H5FD_t *file);
bool              cv_writers_any(void);

/* All processes: brings everything to the file where something is staged. 0, or -1 with an error on the stack. */
int cv_writer_settle(struct cv_writer *writer);

/* This process alone: waits until the others' data of the staged writes up to `call` are in the file. */
int cv_writer_wait(struct cv_writer *writer, uint64_t call);

/* This process alone: its own data are in the file. */
int cv_writer_drain(struct cv_writer *writer);

/* This process is about to open a file, which others need not do. Where it is one that is staged for, all data that were
   staged so far go there first, and no more are: they would be missing in the file that is opened. */
void cv_writers_opening(const char *name);

/* Something is about to be deleted: what is written from now on may lie in space that is freed without a call that all
   processes make. Nothing more is staged, for any file. */
void cv_writers_stop(void);

#endif
