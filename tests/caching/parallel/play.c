/* Plays one process of a parallel HDF5 program: a script of one step a line, one script for each rank.

     play FILE SCRIPT...

   The datasets of FILE have two dimensions, and row r, column c holds r * columns + c + shift. Every value that is
   read is compared with that. Ends with 3 and a line on stderr at the first wrong one, with 4 where a call failed.

     open | self | close       H5Fopen to read, on all ranks or alone; H5Fclose
     rw | new                  H5Fopen to write; H5Fcreate
     dataset NAME rows columns H5Dcreate, contiguous, never filled
     chunks|compressed|late NAME rows columns rows   in chunks of so many rows; late: compressed, H5D_ALLOC_TIME_LATE
     look NAME                 H5Dopen, H5Dclose
     again|beside NAME row rows   this rank opens the file once more, by itself, and reads; beside: by the plain driver
     groups N                  that many new groups in one: metadata
     pause | start             what is staged is not migrated; is migrated (the calls of the HDF5 Cache VOL)
     write NAME MODE row rows  whole rows of what is expected there
     read NAME TYPE MODE row rows by column columns by      hyperslabs; rows 0: nothing selected
     plain NAME row rows       H5Sselect_hyperslab without stride and block
     points NAME MODE count seed
     fill NAME shift           rank 0 writes all of NAME with another shift
     shift N                   what is expected from here on
     driver                    the program must see the MPI driver
     flush | barrier | finalize | library (H5close)
     refused close             H5Fclose must fail
     touch PATH | await PATH   without MPI
     compute MS                keeps a processor busy, without MPI
     clock LABEL               a barrier; rank 0 says how long it is since the last one
     wrote LABEL               rank 0 says how long it was in H5Dwrite since the last time
     die                       kill -9

   PLAY_SAID names a file for what the ranks have to say: mpiexec passes on only a part of it when they abort. */
#include "good.h"

#include <H5VLconnector.h>
#include <hdf5.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int     rank, finalized;
static hid_t   file = H5I_INVALID_HID;
static long    shift;
static char   *step;
static hsize_t columns;
static double  writing; /* seconds in H5Dwrite */

static void failed(const char *what)
{
    fprintf(stderr, "rank %d: %s failed in step: %s", rank, what, step);
    MPI_Abort(MPI_COMM_WORLD, 4);
    _exit(4);
}

static hid_t open_file(const char *name, unsigned flags, MPI_Comm comm)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), opened;

    GOOD(H5Pset_fapl_mpio(fapl, comm, MPI_INFO_NULL));
    GOOD(opened = H5Fopen(name, flags, fapl));
    GOOD(H5Pclose(fapl));
    return opened;
}

static hid_t transfer(const char *mode)
{
    hid_t list = H5Pcreate(H5P_DATASET_XFER);

    if (!strcmp(mode, "collective"))
        GOOD(H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE));
    return list;
}

static void same(double got, long row, long column, int narrow)
{
    long wanted = row * (long)columns + column + shift;

    if (narrow && wanted > 32767)
        wanted = 32767; /* as HDF5 converts */
    if (got != (double)wanted) {
        fprintf(stderr, "rank %d: row %ld, column %ld is %g, not %ld, in step: %s", rank, row, column, got, wanted, step);
        MPI_Abort(MPI_COMM_WORLD, 3);
        _exit(3);
    }
}

static hid_t space_of(hid_t dataset)
{
    hsize_t sizes[2];
    hid_t   space = H5Dget_space(dataset);

    GOOD(H5Sget_simple_extent_dims(space, sizes, NULL));
    columns = sizes[1];
    return space;
}

static void read_rows(const char *name, const char *type, const char *mode, const hsize_t at[2], const hsize_t count[2],
                      const hsize_t by[2], int plain)
{
    hid_t   dataset = H5Dopen2(file, name, H5P_DEFAULT), space = space_of(dataset), list = transfer(mode);
    int     narrow  = !strcmp(type, "short"), wide = !strcmp(type, "double");
    hid_t   memory  = narrow ? H5T_NATIVE_SHORT : wide ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT;
    hsize_t total   = count[0] && count[1] ? count[0] * count[1] : 0;
    hid_t   flat    = H5Screate_simple(1, (hsize_t[]){total ? total : 1}, NULL);
    void   *data    = malloc((total + 1) * sizeof(double));

    if (total) {
        GOOD(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, plain ? NULL : by, count, NULL));
    } else {
        GOOD(H5Sselect_none(space));
        GOOD(H5Sselect_none(flat));
    }
    GOOD(H5Dread(dataset, memory, flat, space, list, data));
    for (hsize_t row = 0, i = 0; row < count[0]; row++)
        for (hsize_t column = 0; column < count[1]; column++, i++)
            same(narrow ? ((short *)data)[i] : wide ? ((double *)data)[i] : ((int *)data)[i],
                 (long)(at[0] + row * by[0]), (long)(at[1] + column * by[1]), narrow);
    free(data);
    H5Sclose(flat), H5Sclose(space), H5Pclose(list), H5Dclose(dataset);
}

static void read_points(const char *name, const char *mode, long count, unsigned seed)
{
    hid_t    dataset = H5Dopen2(file, name, H5P_DEFAULT), space = space_of(dataset), list = transfer(mode);
    hsize_t  sizes[2], *at = malloc((size_t)count * 2 * sizeof *at);
    int     *data = malloc((size_t)count * sizeof *data);
    hid_t    flat = H5Screate_simple(1, (hsize_t[]){(hsize_t)count}, NULL);

    H5Sget_simple_extent_dims(space, sizes, NULL);
    for (long i = 0; i < 2 * count; i++) {
        seed  = seed * 1103515245u + 12345u;
        at[i] = (seed >> 8) % sizes[i % 2];
    }
    GOOD(H5Sselect_elements(space, H5S_SELECT_SET, (size_t)count, at));
    GOOD(H5Dread(dataset, H5T_NATIVE_INT, flat, space, list, data));
    for (long i = 0; i < count; i++)
        same(data[i], (long)at[2 * i], (long)at[2 * i + 1], 0);
    free(at), free(data);
    H5Sclose(flat), H5Sclose(space), H5Pclose(list), H5Dclose(dataset);
}

static void fill(const char *name, long by)
{
    hid_t   dataset = H5Dopen2(file, name, H5P_DEFAULT), space = space_of(dataset);
    hssize_t count  = H5Sget_simple_extent_npoints(space);
    int    *data    = malloc((size_t)count * sizeof *data);

    for (hssize_t i = 0; i < count; i++)
        data[i] = (int)(i + by);
    if (!rank)
        GOOD(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    free(data);
    H5Sclose(space), H5Dclose(dataset);
}

/* `chunk`: rows of a chunk; 0: none. */
static void make_dataset(const char *name, hsize_t rows, hsize_t wide, hsize_t chunk, int compressed)
{
    hid_t space = H5Screate_simple(2, (hsize_t[]){rows, wide}, NULL), list = H5Pcreate(H5P_DATASET_CREATE);

    if (chunk)
        GOOD(H5Pset_chunk(list, 2, (hsize_t[]){chunk, wide}));
    else
        GOOD(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER));
    if (compressed)
        GOOD(H5Pset_deflate(list, 1));
    if (compressed > 1)
        GOOD(H5Pset_alloc_time(list, H5D_ALLOC_TIME_LATE));
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    GOOD(dataset);
    H5Dclose(dataset), H5Pclose(list), H5Sclose(space);
}

static void write_rows(const char *name, const char *mode, hsize_t row, hsize_t rows)
{
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = space_of(dataset), list = transfer(mode);
    hid_t flat    = H5Screate_simple(1, (hsize_t[]){rows * columns}, NULL);
    int  *data    = malloc(rows * columns * sizeof *data);

    for (hsize_t i = 0; i < rows * columns; i++)
        data[i] = (int)((long)(row * columns + i) + shift);
    GOOD(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){row, 0}, NULL, (hsize_t[]){rows, columns}, NULL));
    double begun = MPI_Wtime();
    GOOD(H5Dwrite(dataset, H5T_NATIVE_INT, flat, space, list, data));
    writing += MPI_Wtime() - begun;
    free(data);
    H5Sclose(flat), H5Sclose(space), H5Pclose(list), H5Dclose(dataset);
}

static void look_at_driver(void)
{
    hid_t    fapl = H5Fget_access_plist(file);
    MPI_Comm comm = MPI_COMM_NULL;
    int      size = 0, world = 0;
    hbool_t  atomic = 0;
    void    *handle = NULL;
    MPI_Offset length = 0;

    GOOD(fapl);
    GOOD(H5Pget_fapl_mpio(fapl, &comm, NULL));
    MPI_Comm_size(comm, &size), MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (size != world)
        failed("the communicator");
    MPI_Comm_free(&comm);
    GOOD(H5Pclose(fapl));
    GOOD(H5Fget_mpi_atomicity(file, &atomic));
    GOOD(H5Fget_vfd_handle(file, H5P_DEFAULT, &handle));
    if (MPI_File_get_size(*(MPI_File *)handle, &length) || length <= 0)
        failed("the MPI_File");
}

static void make_groups(long count)
{
    static long made;
    char        name[32];
    hid_t       list = H5Pcreate(H5P_LINK_CREATE);

    GOOD(H5Pset_create_intermediate_group(list, 1));
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof name, "groups/%ld", made++);
        hid_t group = H5Gcreate2(file, name, list, H5P_DEFAULT, H5P_DEFAULT);
        GOOD(group);
        H5Gclose(group);
    }
    H5Pclose(list);
}

static void read_again(const char *path, const char *name, hsize_t row, hsize_t rows, int plain)
{
    hid_t first = file, dataset = H5Dopen2(file, name, H5P_DEFAULT), space = space_of(dataset); /* for `columns` */

    H5Sclose(space), H5Dclose(dataset);
    if (plain)
        GOOD(file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    else
        file = open_file(path, H5F_ACC_RDONLY, MPI_COMM_SELF);
    read_rows(name, "int", "independent", (hsize_t[]){row, 0}, (hsize_t[]){rows, columns}, (hsize_t[]){1, 1}, 1);
    GOOD(H5Fclose(file));
    file = first;
}

static void ask(const char *operation)
{
    H5VL_optional_args_t args = {-1, NULL};

    GOOD(H5VLfind_opt_operation(H5VL_SUBCLS_FILE, operation, &args.op_type));
    GOOD(H5VLfile_optional_op(file, &args, H5P_DEFAULT, H5ES_NONE));
}

static void play(const char *name)
{
    char    a[64], b[64], c[64], path[4096];
    long    n, m;
    unsigned long long v[6];

    if (!strncmp(step, "open", 4))
        file = open_file(name, H5F_ACC_RDONLY, MPI_COMM_WORLD);
    else if (!strncmp(step, "self", 4))
        file = open_file(name, H5F_ACC_RDONLY, MPI_COMM_SELF);
    else if (!strncmp(step, "new", 3)) {
        hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
        GOOD(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL));
        GOOD(file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
        H5Pclose(fapl);
    } else if (sscanf(step, "dataset %63s %llu %llu", a, v, v + 1) == 3)
        make_dataset(a, v[0], v[1], 0, 0);
    else if (sscanf(step, "chunks %63s %llu %llu %llu", a, v, v + 1, v + 2) == 4)
        make_dataset(a, v[0], v[1], v[2], 0);
    else if (sscanf(step, "compressed %63s %llu %llu %llu", a, v, v + 1, v + 2) == 4)
        make_dataset(a, v[0], v[1], v[2], 1);
    else if (sscanf(step, "late %63s %llu %llu %llu", a, v, v + 1, v + 2) == 4)
        make_dataset(a, v[0], v[1], v[2], 2);
    else if (sscanf(step, "look %63s", a) == 1) {
        hid_t dataset = H5Dopen2(file, a, H5P_DEFAULT);
        GOOD(dataset);
        H5Dclose(dataset);
    } else if (sscanf(step, "again %63s %llu %llu", a, v, v + 1) == 3)
        read_again(name, a, v[0], v[1], 0);
    else if (sscanf(step, "beside %63s %llu %llu", a, v, v + 1) == 3)
        read_again(name, a, v[0], v[1], 1);
    else if (sscanf(step, "groups %ld", &n) == 1)
        make_groups(n);
    else if (!strncmp(step, "pause", 5) || !strncmp(step, "start", 5))
        ask(!strncmp(step, "pause", 5) ? "anl.gov.fcache.async.op.pause" : "anl.gov.fcache.async.op.start");
    else if (sscanf(step, "write %63s %63s %llu %llu", a, b, v, v + 1) == 4)
        write_rows(a, b, v[0], v[1]);
    else if (sscanf(step, "wrote %63s", a) == 1) {
        if (!rank)
            printf("%s %.4f\n", a, writing), fflush(stdout);
        writing = 0;
    } else if (!strncmp(step, "rw", 2))
        file = open_file(name, H5F_ACC_RDWR, MPI_COMM_WORLD);
    else if (!strncmp(step, "close", 5))
        GOOD(H5Fclose(file));
    else if (!strncmp(step, "refused close", 13)) {
        if (H5Fclose(file) >= 0)
            failed("the refusal of H5Fclose");
    }
    else if (sscanf(step, "read %63s %63s %63s %llu %llu %llu %llu %llu %llu", a, b, c, v, v + 1, v + 2, v + 3, v + 4, v + 5) == 9)
        read_rows(a, b, c, (hsize_t[]){v[0], v[3]}, (hsize_t[]){v[1], v[4]}, (hsize_t[]){v[2], v[5]}, 0);
    else if (sscanf(step, "plain %63s %llu %llu %llu", a, v, v + 1, v + 2) == 4)
        read_rows(a, "int", "independent", (hsize_t[]){v[0], 0}, (hsize_t[]){v[1], v[2]}, (hsize_t[]){1, 1}, 1);
    else if (sscanf(step, "points %63s %63s %ld %ld", a, b, &n, &m) == 4)
        read_points(a, b, n, (unsigned)m);
    else if (sscanf(step, "fill %63s %ld", a, &n) == 2)
        fill(a, n);
    else if (sscanf(step, "shift %ld", &n) == 1)
        shift = n;
    else if (!strncmp(step, "driver", 6))
        look_at_driver();
    else if (!strncmp(step, "flush", 5))
        GOOD(H5Fflush(file, H5F_SCOPE_LOCAL));
    else if (!strncmp(step, "barrier", 7))
        MPI_Barrier(MPI_COMM_WORLD);
    else if (!strncmp(step, "library", 7))
        GOOD(H5close());
    else if (!strncmp(step, "finalize", 8))
        finalized = !MPI_Finalize();
    else if (sscanf(step, "touch %4095s", path) == 1)
        fclose(fopen(path, "w"));
    else if (sscanf(step, "await %4095s", path) == 1)
        while (access(path, F_OK))
            usleep(1000);
    else if (sscanf(step, "compute %ld", &n) == 1)
        for (double end = MPI_Wtime() + (double)n / 1e3; MPI_Wtime() < end;)
            ;
    else if (sscanf(step, "clock %63s", a) == 1) {
        static double last;
        MPI_Barrier(MPI_COMM_WORLD);
        double now = MPI_Wtime();
        if (!rank)
            printf("%s %.4f\n", a, now - last), fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        last = MPI_Wtime();
    } else if (!strncmp(step, "die", 3))
        raise(SIGKILL);
    else
        failed("reading the script");
}

int main(int argc, char **argv)
{
    char        line[4096];
    const char *said = getenv("PLAY_SAID");

    if (said && !freopen(said, "a", stderr))
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *script = argc > 2 + rank ? fopen(argv[2 + rank], "r") : NULL;
    if (!script)
        return 2;
    for (step = line; fgets(line, sizeof line, script);)
        play(argv[1]);
    fclose(script);
    return finalized ? 0 : MPI_Finalize();
}
