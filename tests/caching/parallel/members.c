/* Writes a dataset of compounds, each process its part, one member after the other: what HDF5 writes of a member are
 * whole elements, and the other members of those it reads first. `members FILE` */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "good.h"

enum { ELEMENTS = 20000, MEMBERS = 4 };

static void failed(const char *what)
{
    fprintf(stderr, "members: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int main(int argc, char **argv)
{
    static double values[ELEMENTS];
    static const char *names[MEMBERS] = {"a", "b", "c", "d"};
    int            rank, size;
    hid_t          access, all, file, space, memory, set, transfer;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    GOOD(access = H5Pcreate(H5P_FILE_ACCESS));
    GOOD(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    GOOD(file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access));
    GOOD(all = H5Tcreate(H5T_COMPOUND, MEMBERS * sizeof(double)));
    for (int i = 0; i < MEMBERS; i++)
        GOOD(H5Tinsert(all, names[i], (size_t)i * sizeof(double), H5T_NATIVE_DOUBLE));
    hsize_t whole = (hsize_t)size * ELEMENTS, part = ELEMENTS, start = (hsize_t)rank * ELEMENTS;
    GOOD(space = H5Screate_simple(1, &whole, NULL));
    GOOD(memory = H5Screate_simple(1, &part, NULL));
    GOOD(set = H5Dcreate2(file, "x", all, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    GOOD(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &part, NULL));
    GOOD(transfer = H5Pcreate(H5P_DATASET_XFER));
    GOOD(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
    for (int i = 0; i < MEMBERS; i++) {
        hid_t one;
        GOOD(one = H5Tcreate(H5T_COMPOUND, sizeof(double)));
        GOOD(H5Tinsert(one, names[i], 0, H5T_NATIVE_DOUBLE));
        for (hsize_t n = 0; n < part; n++)
            values[n] = (double)(start + n) + 0.1 * (i + 1);
        GOOD(H5Dwrite(set, one, memory, space, transfer, values));
        GOOD(H5Tclose(one));
    }
    GOOD(H5Pclose(transfer));
    GOOD(H5Dclose(set));
    GOOD(H5Sclose(space));
    GOOD(H5Sclose(memory));
    GOOD(H5Tclose(all));
    GOOD(H5Fclose(file));
    GOOD(H5Pclose(access));
    MPI_Finalize();
    return 0;
}
