/* Records through C streams, one file for each rank: streams write|read FILE RECORD COUNT BUFFER [COMPUTE]
 *
 * RECORD and BUFFER are bytes (BUFFER 0: what the C library takes), COMPUTE the seconds slept half-way. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 6)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int writes = !strcmp(argv[1], "write");
    size_t record = strtoul(argv[3], NULL, 10), buffer = strtoul(argv[5], NULL, 10);
    long count = atol(argv[4]);
    char name[4096], *data = calloc(1, record);
    snprintf(name, sizeof name, "%s.%d", argv[2], rank);
    FILE *stream = fopen(name, writes ? "w" : "r");
    if (!stream || !data)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (buffer)
        setvbuf(stream, NULL, _IOFBF, buffer);
    for (long i = 0; i < count; i++) {
        if (i == count / 2 && argc > 6)
            usleep((useconds_t)(1e6 * atof(argv[6])));
        if ((writes ? fwrite(data, record, 1, stream) : fread(data, record, 1, stream)) != 1)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(stream);
    free(data);
    MPI_Finalize();
    return 0;
}
