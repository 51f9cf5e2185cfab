/* Opening of files with HDF5's MPI driver. */
#ifndef CACHEVOL_MPI_OPEN_H
#define CACHEVOL_MPI_OPEN_H

#include "mpi_api.h"
#include "object.h"

/* H5VL_NATIVE_FILE_GET_MPI_ATOMICITY and ..._SET_..., which headers of a serial HDF5 do not have. */
#define CV_GET_ATOMICITY 26
#define CV_SET_ATOMICITY 27

/* As H5VLfile_open with an access list that asks for the MPI driver. Finishes what a killed program left for the file.
   Of a file opened for reading, its processes, all of which take part, agree whether they read it by way of their nodes'
   copies; `read` tells that this process wants it. Else it is opened as it is without the connector. */
void *cv_mpi_open(const char *name, unsigned flags, hid_t fapl, hid_t vol, bool read, hid_t dxpl, void **request);

/* Whether the file is open already by way of a copy, so that HDF5 does not know that it is: as HDF5 then does, opening
   it to write fails, and an error is on the stack. */
bool cv_mpi_refuses_writer(const char *name);

/* After H5VLfile_get: the program sees the driver that it asked for. */
void cv_mpi_show_driver(hid_t fapl);

/* Whether a transfer list asks for what all processes do together; makes it do so, or not. */
bool cv_mpi_is_collective(hid_t dxpl);
void cv_mpi_set_collective(hid_t dxpl, bool collective);

/* Around a read. HDF5 refuses collective transfers of a file that does not use MPI: of one that is read by our driver,
   the program's list asks for an independent one meanwhile, which is what HDF5 then notes there. */
bool cv_mpi_read_begins(struct cv_object *dataset, hid_t dxpl);
void cv_mpi_read_ends(bool changed, hid_t dxpl);

/* H5VLfile_optional, for the two operations on MPI's atomicity: a file that is only read is as atomic as can be. */
herr_t cv_mpi_optional(struct cv_object *file, H5VL_optional_args_t *args, hid_t dxpl, void **request);

#endif
