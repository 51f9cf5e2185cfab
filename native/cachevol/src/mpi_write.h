/* Which data of parallel files are staged: those of collective writes (and of others where the program asks for it),
   since there the processes meet and can tell each other what they write. They stage where the selections of all are
   blocks that do not overlap, large enough that nothing is gained by MPI's putting them together; each then writes its
   own, in its own time. Compressed data HDF5 puts together itself, whatever the selections are; what is staged are the
   chunks that come of it.

   Hooks around calls of the connector; each returns at once where no file is staged for. */
#ifndef CACHEVOL_MPI_WRITE_H
#define CACHEVOL_MPI_WRITE_H

#include "mpi_writer.h"

/* Before and after H5VLdataset_write. */
struct cv_mpi_write {
    struct cv_writer *writer; /* NULL: as without the connector */
    bool              together, compressed; /* a collective one; of compressed data */
    bool              bad;    /* an error is on the stack; the write fails */
};
struct cv_mpi_write cv_mpi_write_begins(size_t count, void *datasets[], const hid_t file_spaces[], hid_t dxpl);
void cv_mpi_write_ends(struct cv_mpi_write write, hid_t dxpl);

/* Before and after an object is opened, by where it is; and after a dataset was created. */
struct cv_mpi_open {
    struct cv_writer *writer; /* NULL: nothing is remembered */
    uint64_t          dataset;
};
struct cv_mpi_open cv_mpi_open_begins(struct cv_object *object, const H5VL_loc_params_t *where, hid_t dxpl);
void               cv_mpi_open_ends(struct cv_mpi_open opening, bool opened);
void               cv_mpi_created(struct cv_object *dataset, hid_t dxpl);

/* Before datasets are read. 0, or -1 with an error on the stack. */
int cv_mpi_before_read(size_t count, void *datasets[], const hid_t file_spaces[], hid_t dxpl);

/* Before what all processes do together where data may lie that they staged: a flush, a close, a change of structure. */
int cv_mpi_settle(struct cv_object *object, H5I_type_t type, hid_t dxpl);
/* Before a file is closed. Where it fails, the log keeps what is missing, and HDF5's metadata, which a replay does not have,
   go to the file without waiting for it. */
int cv_mpi_closing(struct cv_object *file, hid_t dxpl);
/* Before something is deleted. */
int cv_mpi_deleting(struct cv_object *object, H5I_type_t type, hid_t dxpl);
/* Before this process does alone what the connector does not understand. */
int cv_mpi_before_any(struct cv_object *object, H5I_type_t type, hid_t dxpl);

#endif
