/* The few facts of a configured HDF5 that its public headers ask for, on a 64-bit machine.
   H5_HAVE_PARALLEL stays undefined: the connector finds a parallel library at run time. */
#ifndef CACHEVOL_H5PUBCONF_H
#define CACHEVOL_H5PUBCONF_H
#define H5_SIZEOF_INT 4
#define H5_SIZEOF_LONG 8
#define H5_SIZEOF_LONG_LONG 8
#define H5_SIZEOF_SIZE_T 8
#define H5_SIZEOF_SSIZE_T 8
#define H5_HAVE_SYS_TYPES_H 1
#define H5_USE_200_API_DEFAULT 1
#endif
