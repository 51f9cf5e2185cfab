/* A random parallel HDF5 program that writes, and knows what must be in the file.

     scribble FILE SEED STEPS PERCENT         plays it, comparing all that it reads
     scribble FILE SEED STEPS PERCENT RANKS   plays it without HDF5, then compares the file with what must be in it

   All ranks draw the same numbers, so that each knows what the others write, and keep all datasets in memory. Ranks
   that write the same elements have a barrier between them, but no flush, which MPI would ask for and HDF5 programs on
   ordinary file systems do without. Of the datasets, PERCENT are compressed: those are written by all ranks together, which
   HDF5 wants, and never resized, at which HDF5 1.14 itself fails. Ends with 3 and a line on stderr at the first wrong
   value, with 4 where a call failed. */
#include "good.h"

#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATASETS = 6, ROWS = 600, COLUMNS = 300 };

struct dataset {
    char    name[16];
    hsize_t sizes[2], chunk[2]; /* chunk[0] is 0 for a contiguous one */
    int     there;
    int     fill;
    int     compressed;
    hid_t   set; /* open all the time: HDF5 1.14 fails to delete what one rank has opened by itself */
    int    *data; /* ROWS x COLUMNS, of which sizes are used */
};

struct slab {
    hsize_t start[2], stride[2], count[2], block[2]; /* count 0: nothing */
};

static int            rank, ranks, dry;
static unsigned       percent; /* of datasets, compressed */
static long           step;
static hid_t          file = H5I_INVALID_HID;
static struct dataset all[DATASETS];
static const char    *name;

static void failed(const char *what)
{
    fprintf(stderr, "rank %d: %s failed in step %ld\n", rank, what, step);
    MPI_Abort(MPI_COMM_WORLD, 4);
    _exit(4);
}

static unsigned long long state;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static int value(long at, hsize_t row, hsize_t column)
{
    return (int)((at * 1000003 + (long)row * 1009 + (long)column) & 0x3fffffff);
}

static int *element(struct dataset *d, hsize_t row, hsize_t column)
{
    return d->data + row * COLUMNS + column;
}

#define EACH(s, row, column)                                                                                 \
    for (hsize_t ci = 0; ci < (s)->count[0]; ci++)                                                           \
        for (hsize_t bi = 0; bi < (s)->block[0]; bi++)                                                       \
            for (hsize_t row = (s)->start[0] + ci * (s)->stride[0] + bi, cj = 0; cj < (s)->count[1]; cj++)   \
                for (hsize_t bj = 0, column; bj < (s)->block[1] &&                                           \
                     (column = (s)->start[1] + cj * (s)->stride[1] + bj, 1); bj++)

static hsize_t elements(const struct slab *s)
{
    return s->count[0] * s->block[0] * s->count[1] * s->block[1];
}

static hid_t list(int together)
{
    hid_t made = H5Pcreate(H5P_DATASET_XFER);

    if (together)
        GOOD(H5Pset_dxpl_mpio(made, H5FD_MPIO_COLLECTIVE));
    return made;
}

static hid_t open_file(unsigned flags, int creates)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), opened;

    GOOD(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL));
    GOOD(H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V114)); /* deleting from older groups fails by itself */
    GOOD(opened = creates ? H5Fcreate(name, flags, H5P_DEFAULT, fapl) : H5Fopen(name, flags, fapl));
    GOOD(H5Pclose(fapl));
    return opened;
}

static void select_slab(hid_t space, const struct slab *s)
{
    if (elements(s))
        GOOD(H5Sselect_hyperslab(space, H5S_SELECT_SET, s->start, s->stride, s->count, s->block));
    else
        GOOD(H5Sselect_none(space));
}

/* Writes, or reads and compares. */
static void transfer(struct dataset *d, const struct slab *s, int writes, int together, int wide)
{
    hsize_t total = elements(s), i = 0;
    hid_t   space = H5Dget_space(d->set), how = list(together);
    hid_t   flat = H5Screate_simple(1, (hsize_t[]){total ? total : 1}, NULL);
    hid_t   type = wide ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT;
    double *data = calloc(total + 1, sizeof *data);

    select_slab(space, s);
    if (!total)
        GOOD(H5Sselect_none(flat));
    if (writes) {
        EACH(s, row, column)
        {
            if (wide)
                data[i++] = value(step, row, column);
            else
                ((int *)data)[i++] = value(step, row, column);
        }
        GOOD(H5Dwrite(d->set, type, flat, space, how, data));
    } else {
        GOOD(H5Dread(d->set, type, flat, space, how, data));
        EACH(s, row, column)
        {
            double got = wide ? data[i] : ((int *)data)[i];
            i++;
            if (got == *element(d, row, column))
                continue;
            fprintf(stderr, "rank %d, step %ld: %s[%llu, %llu] is %.0f, not %d\n", rank, step, d->name,
                    (unsigned long long)row, (unsigned long long)column, got, *element(d, row, column));
            MPI_Abort(MPI_COMM_WORLD, 3);
            _exit(3);
        }
    }
    free(data);
    H5Sclose(flat), H5Sclose(space), H5Pclose(how);
}

static void remember(struct dataset *d, const struct slab *s)
{
    EACH(s, row, column) *element(d, row, column) = value(step, row, column);
}

static struct slab box(const struct dataset *d)
{
    struct slab s = {.stride = {1, 1}, .block = {1, 1}};

    for (int i = 0; i < 2; i++) {
        s.start[i] = draw((unsigned)d->sizes[i]);
        s.count[i] = 1 + draw((unsigned)(d->sizes[i] - s.start[i]));
    }
    return s;
}

/* What one rank writes of a dataset that all write together: rows, columns, or rows in turn; of the first `rows`. */
static struct slab part(const struct dataset *d, hsize_t rows, int kind, int turn, int mine)
{
    struct slab s     = {.stride = {1, 1}, .block = {1, 1}, .count = {rows, d->sizes[1]}};
    int         along = kind == 1;
    hsize_t     whole = s.count[along], place = (hsize_t)((mine + turn) % ranks), each = whole / (hsize_t)ranks;

    if (kind == 2) {
        s.start[0] = place, s.stride[0] = (hsize_t)ranks;
        s.count[0] = place < whole ? (whole - place - 1) / (hsize_t)ranks + 1 : 0;
    } else {
        s.start[along] = place * each;
        s.count[along] = place == (hsize_t)ranks - 1 ? whole - s.start[along] : each;
        if (kind == 3 && mine == turn % ranks)
            s.count[along] = 0;
    }
    return s;
}

/* A rank that has read a compressed chunk keeps it, and would not see that the others changed it: without a cache. */
static hid_t access_list(const struct dataset *d)
{
    hid_t list = H5Pcreate(H5P_DATASET_ACCESS);

    if (d->compressed)
        GOOD(H5Pset_chunk_cache(list, 0, 0, H5D_CHUNK_CACHE_W0_DEFAULT));
    return list;
}

static void make(struct dataset *d)
{
    int  filled = draw(2), kind = (int)draw(4), early = draw(2);
    int  fill     = filled ? (int)draw(1000) : 0;

    d->sizes[0] = 100 + draw(ROWS - 100), d->sizes[1] = 100 + draw(COLUMNS - 100);
    d->chunk[0] = kind ? 0 : 20 + draw(100), d->chunk[1] = kind ? 0 : 50 + draw((unsigned)d->sizes[1] - 50);
    d->compressed = percent && draw(100) < percent;
    int when = d->compressed ? (int)draw(4) : 0, sums = d->compressed ? (int)draw(2) : 0;
    if (d->compressed)
        d->chunk[0] = 10 + draw(60), d->chunk[1] = 20 + draw((unsigned)d->sizes[1] - 20);
    d->there = 1, d->fill = fill;
    for (hsize_t i = 0; i < ROWS * COLUMNS; i++)
        d->data[i] = fill;
    if (dry)
        return;
    hid_t list  = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, d->sizes, d->chunk[0] ? (hsize_t[]){ROWS, COLUMNS} : NULL);
    if (d->chunk[0])
        GOOD(H5Pset_chunk(list, 2, d->chunk));
    GOOD(H5Pset_fill_time(list, H5D_FILL_TIME_ALLOC)); /* else what was there before is seen */
    if (filled)
        GOOD(H5Pset_fill_value(list, H5T_NATIVE_INT, &fill));
    if (d->compressed)
        GOOD(H5Pset_deflate(list, 1));
    if (sums)
        GOOD(H5Pset_fletcher32(list));
    if (d->compressed && when == 0)
        GOOD(H5Pset_alloc_time(list, H5D_ALLOC_TIME_LATE));
    if (early)
        GOOD(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
    hid_t access = access_list(d);
    GOOD(d->set = H5Dcreate2(file, d->name, H5T_STD_I32LE, space, H5P_DEFAULT, list, access));
    H5Sclose(space), H5Pclose(list), H5Pclose(access);
}

static void resize(struct dataset *d)
{
    hsize_t sizes[2] = {50 + draw(ROWS - 50), 50 + draw(COLUMNS - 50)};

    if (!d->chunk[0])
        return;
    if (!dry) {
        GOOD(H5Dset_extent(d->set, sizes));
        GOOD(H5Dclose(d->set)); /* HDF5 1.14 keeps chunks that it has cut, and then fails to write to them */
        GOOD(d->set = H5Dopen2(file, d->name, H5P_DEFAULT));
    }
    for (hsize_t row = 0; row < ROWS; row++)
        for (hsize_t column = 0; column < COLUMNS; column++)
            if (row >= sizes[0] || column >= sizes[1])
                *element(d, row, column) = d->fill;
    memcpy(d->sizes, sizes, sizeof sizes);
}

static void open_datasets(void)
{
    for (int i = 0; i < DATASETS; i++)
        if (all[i].there) {
            hid_t access = access_list(&all[i]);
            GOOD(all[i].set = H5Dopen2(file, all[i].name, access));
            H5Pclose(access);
        }
}

static void close_file(void)
{
    for (int i = 0; i < DATASETS; i++)
        if (all[i].there)
            GOOD(H5Dclose(all[i].set));
    GOOD(H5Fclose(file));
}

static void play(void)
{
    struct dataset *d    = &all[draw(DATASETS)];
    int             what = (int)draw(20), kind = (int)draw(4), turn = (int)draw((unsigned)ranks), wide = !draw(4);
    int             one = (int)draw((unsigned)ranks), other = (int)draw((unsigned)ranks), together = (int)draw(2);

    if (!d->there) {
        make(d);
        what = 0;
    }
    hsize_t rows = d->compressed && draw(2) ? (hsize_t)ranks + draw((unsigned)d->sizes[0] - (unsigned)ranks) : d->sizes[0];
    if (d->compressed && what >= 6 && what <= 8)
        what = 0;
    if (d->compressed && what == 17)
        what = 12;
    wide = wide && !d->compressed; /* HDF5 1.14 does not convert what it compresses */
    switch (what) {
    case 0: case 1: case 2: case 3: case 4: case 5: /* all write, mostly whole rows */
        kind = draw(3) && !d->compressed ? 0 : kind;
        if (!dry) {
            struct slab mine = part(d, rows, kind, turn, rank);
            transfer(d, &mine, 1, 1, wide);
        }
        for (int i = 0; i < ranks; i++) {
            struct slab each = part(d, rows, kind, turn, i);
            remember(d, &each);
        }
        break;
    case 6: case 7: case 8: { /* one writes alone, after the others; another one looks, after that */
        struct slab s = box(d), seen = box(d);
        if (!dry && rank == one)
            transfer(d, &s, 1, 0, wide);
        remember(d, &s);
        if (!dry)
            MPI_Barrier(MPI_COMM_WORLD);
        if (!dry && rank == other)
            transfer(d, &seen, 0, 0, wide);
        if (!dry)
            MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
    case 9: case 10: case 11: { /* one reads what another one may have staged */
        struct slab s = box(d);
        if (!dry) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == one)
                transfer(d, &s, 0, 0, wide);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        break;
    }
    case 12: case 13: { /* all read */
        struct slab s = box(d);
        if (!dry) {
            MPI_Barrier(MPI_COMM_WORLD);
            transfer(d, &s, 0, together, wide);
            MPI_Barrier(MPI_COMM_WORLD); /* before somebody writes there */
        }
        break;
    }
    case 14:
        if (!dry)
            GOOD(H5Fflush(file, H5F_SCOPE_GLOBAL));
        break;
    case 15:
        if (!dry) {
            close_file();
            file = open_file(H5F_ACC_RDWR, 0);
            open_datasets();
        }
        break;
    case 16: /* its space is another's next */
        if (!dry) {
            GOOD(H5Dclose(d->set));
            GOOD(H5Ldelete(file, d->name, H5P_DEFAULT));
        }
        make(d);
        break;
    case 17: resize(d); break;
    case 18: /* metadata */
        if (!dry) {
            hid_t space = H5Screate(H5S_SCALAR);
            char  text[32];
            snprintf(text, sizeof text, "a%ld", step);
            hid_t mark = H5Acreate2(d->set, text, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
            GOOD(H5Awrite(mark, H5T_NATIVE_INT, &one));
            H5Aclose(mark), H5Sclose(space);
        }
        break;
    case 19:
        if (!dry && kind == 0)
            GOOD(H5Fset_mpi_atomicity(file, wide));
        else if (!dry && kind == 1) {
            void *handle;
            GOOD(H5Fget_vfd_handle(file, H5P_DEFAULT, &handle));
        } else if (!dry)
            usleep(1000 * (useconds_t)turn);
        break;
    }
}

static void check(void)
{
    GOOD(file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT));
    open_datasets();
    for (int i = 0; i < DATASETS; i++) {
        struct slab whole = {.stride = {1, 1}, .block = {1, 1}, .count = {all[i].sizes[0], all[i].sizes[1]}};
        if (all[i].there)
            transfer(&all[i], &whole, 0, 0, 0);
        else if (H5Lexists(file, all[i].name, H5P_DEFAULT))
            failed("a dataset that is not there");
    }
    close_file();
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    percent = (unsigned)atoi(argv[4]);
    dry     = argc > 5;
    name  = argv[1];
    state = strtoull(argv[2], NULL, 10) * 2654435761u + 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (dry)
        ranks = atoi(argv[5]);
    for (int i = 0; i < DATASETS; i++) {
        snprintf(all[i].name, sizeof all[i].name, "d%d", i);
        all[i].data = calloc(ROWS * COLUMNS, sizeof *all[i].data);
    }
    if (!dry)
        file = open_file(H5F_ACC_TRUNC, 1);
    for (long steps = atol(argv[3]); step < steps; step++)
        play();
    if (dry)
        check();
    else
        close_file();
    return MPI_Finalize();
}
