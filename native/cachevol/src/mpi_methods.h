/* Methods that stand in the place of those of HDF5's MPI driver while a file has a writer (mpi_writer.h). */
#ifndef CACHEVOL_MPI_METHODS_H
#define CACHEVOL_MPI_METHODS_H

#include "mpi_writer.h"

/* Whether a driver is HDF5's own, as it was when the first file was opened by it. */
bool cv_methods_are_native(const H5FD_class_t *driver);

/* Puts the methods in the place of those of the writer's file. */
void cv_methods_lend(struct cv_writer *writer);

/* What becomes of the data that HDF5 writes from now on: nothing is staged; data as they are in memory; chunks that the
   processes have put together. */
enum cv_way { CV_STAGE_NOTHING, CV_STAGE_PLAIN, CV_STAGE_CHUNKS };
void cv_methods_stage(struct cv_writer *writer, enum cv_way way);

#endif
