/* The functions of the MPI library that libhdf5 uses, found at run time, and only once a file is opened with HDF5's
   MPI driver. Handles and constants are those of MPICH's binary interface, which Intel MPI, MVAPICH and Cray MPICH
   share; with another MPI library nothing here is used, and parallel files stay as they are without the connector. */
#ifndef CACHEVOL_MPI_API_H
#define CACHEVOL_MPI_API_H

#include "api.h"

#include <stdbool.h>
#include <stdint.h>

typedef int cv_comm, cv_info, cv_win, cv_request;

#define CV_COMM_SELF      ((cv_comm)0x44000001)
#define CV_COMM_NULL      ((cv_comm)0x04000000)
#define CV_INFO_NULL      ((cv_info)0x1c000000)
#define CV_WIN_NULL       ((cv_win)0x20000000)
#define CV_REQUEST_NULL   ((cv_request)0x2c000000)
#define CV_BYTE           0x4c00010d
#define CV_UINT16         0x4c00023c
#define CV_UINT64         0x4c00083e
#define CV_MAX            0x58000001
#define CV_MIN            0x58000002
#define CV_BAND           0x58000006
#define CV_NO_OP          0x5800000e
#define CV_ERRORS_RETURN  0x54000001
#define CV_KEYVAL_INVALID 0x24000000
#define CV_NOCHECK        1024
#define CV_CONGRUENT      1 /* what MPI_Comm_compare gives at most where two have the same processes in one order */
#define CV_RDONLY         2
#define CV_STATUS_IGNORE  ((void *)1)

#define CV_MPI(X)                                                                                            \
    X(int, Initialized, (int *))                                                                             \
    X(int, Finalized, (int *))                                                                               \
    X(int, Get_library_version, (char *, int *))                                                             \
    X(int, Comm_rank, (cv_comm, int *))                                                                      \
    X(int, Comm_size, (cv_comm, int *))                                                                      \
    X(int, Comm_compare, (cv_comm, cv_comm, int *))                                                          \
    X(int, Comm_free, (cv_comm *))                                                                           \
    X(int, Comm_set_errhandler, (cv_comm, int))                                                              \
    X(int, Comm_create_keyval, (void *, int (*)(cv_comm, int, void *, void *), int *, void *))               \
    X(int, Comm_set_attr, (cv_comm, int, void *))                                                            \
    X(int, Info_free, (cv_info *))                                                                           \
    X(int, Allreduce, (const void *, void *, int, int, int, cv_comm))                                        \
    X(int, Allgather, (const void *, int, int, void *, int, int, cv_comm))                                   \
    X(int, Barrier, (cv_comm))                                                                               \
    X(int, Win_create, (void *, intptr_t, int, cv_info, cv_comm, cv_win *))                                  \
    X(int, Win_allocate, (intptr_t, int, cv_info, cv_comm, void *, cv_win *))                                \
    X(int, Win_set_errhandler, (cv_win, int))                                                                \
    X(int, Win_lock_all, (int, cv_win))                                                                      \
    X(int, Win_unlock_all, (cv_win))                                                                         \
    X(int, Win_flush_all, (cv_win))                                                                          \
    X(int, Win_sync, (cv_win))                                                                               \
    X(int, Win_free, (cv_win *))                                                                             \
    X(int, Rget, (void *, int, int, int, intptr_t, int, int, cv_win, cv_request *))                          \
    X(int, Accumulate, (const void *, int, int, int, intptr_t, int, int, int, cv_win))                       \
    X(int, Rget_accumulate,                                                                                  \
      (const void *, int, int, void *, int, int, int, intptr_t, int, int, int, cv_win, cv_request *))        \
    X(int, Test, (cv_request *, int *, void *))                                                              \
    X(int, Wait, (cv_request *, void *))                                                                     \
    X(int, File_open, (cv_comm, const char *, int, cv_info, void **))                                        \
    X(int, File_close, (void **))

struct cv_mpi_api {
#define POINTER(type, name, arguments) type (*name) arguments;
    CV_MPI(POINTER)
#undef POINTER
    /* Of libhdf5, where it is a parallel one: */
    herr_t (*Pget_fapl_mpio)(hid_t, cv_comm *, cv_info *);
    herr_t (*Pset_fapl_mpio)(hid_t, cv_comm, cv_info);
    herr_t (*Pset_dxpl_mpio)(hid_t, int);
    herr_t (*Pget_dxpl_mpio)(hid_t, int *);
    herr_t (*Pget_coll_metadata_write)(hid_t, bool *);
};

extern struct cv_mpi_api mpi;

/* Whether the access list asks for HDF5's MPI driver. Makes no MPI call. */
bool cv_mpi_asked(hid_t fapl);

/* Finds the functions when first called. Whether MPI runs, with a library whose binary interface is known here. */
bool cv_mpi_usable(void);

/* Whether it holds in all processes; all take part. */
bool cv_mpi_all(cv_comm comm, bool mine);

#endif
