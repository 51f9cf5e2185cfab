/* Reads a file through the connector's reader on several ranks, without HDF5, and compares every byte.

     share FILE SEED EPOCHS WAY

   FILE holds at byte i the value of `byte(i)`. WAY: `parts` (each rank reads its part, in each epoch another one),
   `random` (ranges anywhere), `alone` (in the second epoch rank 0 reads all, while the others wait outside MPI until
   FILE.done is there). After the first epoch, each rank runs the shell command in SHARE_THEN. The settings come from the environment, as always. */
#include "config.h"
#include "fill.h"
#include "mpi_driver.h"
#include "mpi_peers.h"
#include "session.h"
#include "stats.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the table of functions asks of a parallel libhdf5; nothing here calls them. */
#define ABSENT(name)                                                                                         \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return -1;                                                                                           \
    }
ABSENT(H5Pget_fapl_mpio)
ABSENT(H5Pset_fapl_mpio)
ABSENT(H5Pset_dxpl_mpio)
ABSENT(H5Pget_dxpl_mpio)
ABSENT(H5Pget_coll_metadata_write)

static unsigned char byte(uint64_t at)
{
    return (unsigned char)((at * 2654435761u) >> 13 ^ at >> 9);
}

static void read_range(struct cv_reader *reader, uint64_t at, uint64_t size)
{
    unsigned char *data = malloc(size);

    if (cv_reader_read(reader, data, size, at) != (ssize_t)size) {
        fprintf(stderr, "%lu bytes from %lu were not read\n", (unsigned long)size, (unsigned long)at);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (uint64_t i = 0; i < size; i++)
        if (data[i] != byte(at + i)) {
            fprintf(stderr, "byte %lu is wrong\n", (unsigned long)(at + i));
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    free(data);
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

int main(int argc, char **argv)
{
    int         rank, size;
    char        path[PATH_MAX], done[PATH_MAX + 8];
    struct stat now;
    MPI_Comm    comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    h5.library = dlopen(NULL, RTLD_NOW);
    cv_session_configure(NULL);
    if (argc != 5 || !realpath(argv[1], path) || !cv_session_store() || !cv_mpi_usable())
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(done, sizeof done, "%s.done", path);
    uint64_t state = (uint64_t)atol(argv[2]) + 1000u * (uint64_t)rank;
    int      file  = open(path, O_RDONLY | O_CLOEXEC);
    fstat(file, &now);
    uint64_t          length = (uint64_t)now.st_size;
    struct cv_reader *reader = cv_reader_open(cv_session_store(), path, file);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    struct cv_peers *peers = cv_peers_open(comm, cv_reader_copy(reader));
    if (peers)
        cv_reader_share(reader, peers);
    for (int epoch = 0; epoch < atoi(argv[3]); epoch++) {
        if (!strcmp(argv[4], "random")) {
            for (int i = 0; i < 40; i++) {
                uint64_t at = draw(&state) % length, most = draw(&state) % 4 ? 20000 : 6000000;
                uint64_t bytes = 1 + draw(&state) % most;
                read_range(reader, at, bytes < length - at ? bytes : length - at);
            }
        } else if (!strcmp(argv[4], "parts") || !epoch) {
            uint64_t part = length / (uint64_t)size, mine = (uint64_t)((rank + epoch) % size), at = mine * part;
            uint64_t end = mine + 1 == (uint64_t)size ? length : at + part;
            for (uint64_t step = 300001; at < end; at += step)
                read_range(reader, at, step < end - at ? step : end - at);
        } else if (!rank) {
            for (uint64_t at = 0; at < length; at += 300001)
                read_range(reader, at, 300001 < length - at ? 300001 : length - at);
            close(open(done, O_WRONLY | O_CREAT, 0600));
        } else {
            while (access(done, F_OK))
                usleep(1000);
        }
        cv_reader_settle(reader);
        MPI_Barrier(MPI_COMM_WORLD);
        if (!epoch && getenv("SHARE_THEN")) {
            if (system(getenv("SHARE_THEN")))
                MPI_Abort(MPI_COMM_WORLD, 5);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    cv_reader_close(reader);
    close(file);
    cv_fill_finish();
    cv_stats_write(cv_config.stats);
    return MPI_Finalize();
}
