#include "mpi_methods.h"
#include "driver_common.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* HDF5's driver with some methods replaced; `native` is the driver as it was.

   `watching`, while nothing is staged: closes, and writes metadata after the chunks that they may tell of.
   `plain`: takes data one piece at a time, which is how HDF5 writes them where a driver takes nothing else. What a
   write reads first (of a compound, one of whose members is written, the others) is in the file by then.
   `chunks`: compressed data. HDF5 has put chunks together, compressed them and found places for them, with the other
   processes, and writes its own as one list, which is staged. */
static const H5FD_class_t *native;
static H5FD_class_t        watching, plain, chunks;

/* All processes do this, in MPI_Finalize at the latest. Their data are there: closing began with settling. */
static herr_t close_file(H5FD_t *file)
{
    struct cv_writer *writer = cv_writer_of_driver(file);
    char              log[128];
    int               bad = 0;

    cv_driver_closed = true;
    file->cls        = native;
    if (writer) {
        bad = cv_stage_close(writer->stage, log, sizeof log);
        if (bad)
            CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'; they are kept "
                           "in log %s: make room, then run `tiercel cache replay`", errno, strerror(errno), log);
        cv_writer_free(writer);
    }
    hid_t  errors  = bad ? h5.H5Eget_current_stack() : H5I_INVALID_HID;
    herr_t outcome = native->close(file);
    if (errors >= 0)
        h5.H5Eset_current_stack(errors);
    return bad ? -1 : outcome;
}

/* Metadata may tell where staged chunks lie. A chunk that changed its size has moved, so without it there is nothing
   that they tell of, not even what was flushed before: it is in the file first, as it is without the connector. */
static int chunks_first(struct cv_writer *writer)
{
    if (!writer || writer->chunks <= writer->settled)
        return 0;
    if (cv_writer_drain(writer) || cv_writer_wait(writer, writer->chunks))
        return -1;
    writer->chunks = 0;
    return 0;
}

static herr_t write_watched(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *data)
{
    if (type != H5FD_MEM_DRAW && chunks_first(cv_writer_of_driver(file)))
        return -1;
    return native->write(file, type, dxpl, address, size, data);
}

static herr_t stage_piece(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *data)
{
    struct cv_writer *writer = cv_writer_of_driver(file);

    if (!writer || type != H5FD_MEM_DRAW)
        return write_watched(file, type, dxpl, address, size, data);
    if (!cv_stage_write(writer->stage, true, address, data, size))
        return 0;
    CV_WRITE_ERROR("file write failed: errno = %d, error message = '%s', total write size = %zu, offset = %llu", errno,
                   strerror(errno), size, (unsigned long long)address);
    return -1;
}

/* What this process has staged in the dataset it may be about to read; of others nothing lies where it writes. */
static int own_first(H5FD_t *file)
{
    struct cv_writer *writer = cv_writer_of_driver(file);

    return writer && cv_writer_drain(writer) ? -1 : 0;
}

static herr_t read_first(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, void *data)
{
    return own_first(file) ? -1 : native->read(file, type, dxpl, address, size, data);
}

static herr_t read_list_first(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                              size_t sizes[], void *data[])
{
    return own_first(file) ? -1 : native->read_vector(file, dxpl, count, types, addresses, sizes, data);
}

static herr_t read_selection_first(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[], hid_t spaces[],
                                   haddr_t offsets[], size_t element_sizes[], void *data[])
{
    return own_first(file) ? -1 : native->read_selection(file, type, dxpl, count, memory, spaces, offsets, element_sizes, data);
}

/* Older HDF5 1.14 has MPI write compressed data together, by a call of this: that is left to it. */
static herr_t write_chunks(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *data)
{
    struct cv_writer *writer = cv_writer_of_driver(file);

    if (writer && !writer->learned && type == H5FD_MEM_DRAW)
        writer->lists = CV_NO;
    return write_watched(file, type, dxpl, address, size, data);
}

/* Lists are shortened: from a type NOLIST, or a size 0, on all are like the one before. */
static bool all_data(uint32_t count, const H5FD_mem_t types[])
{
    for (uint32_t i = 0; i < count && types[i] != H5FD_MEM_NOLIST; i++)
        if (types[i] != H5FD_MEM_DRAW)
            return false;
    return true;
}

static herr_t write_list(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[], size_t sizes[],
                         const void *data[])
{
    if (!all_data(count, types) && chunks_first(cv_writer_of_driver(file)))
        return -1;
    return native->write_vector(file, dxpl, count, types, addresses, sizes, data);
}

static herr_t stage_list(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[], size_t sizes[],
                         const void *data[])
{
    struct cv_writer *writer  = cv_writer_of_driver(file);
    herr_t            outcome = 0;
    size_t            size    = 0;
    bool              same    = false;

    if (!writer || !all_data(count, types))
        return write_list(file, dxpl, count, types, addresses, sizes, data);
    for (uint32_t i = 0; i < count && outcome >= 0; i++) {
        same    = same || !sizes[i];
        size    = same ? size : sizes[i];
        outcome = stage_piece(file, H5FD_MEM_DRAW, dxpl, addresses[i], size, data[i]);
    }
    /* All processes come here together, those with no chunk too, and so count alike. */
    writer->chunks = ++writer->calls;
    cv_stage_called(writer->stage, writer->calls, writer->emptied);
    if (writer->lists == CV_UNKNOWN)
        writer->lists = CV_YES;
    return outcome;
}

bool cv_methods_are_native(const H5FD_class_t *driver)
{
    return !native || driver == native;
}

void cv_methods_lend(struct cv_writer *writer)
{
    if (!native) {
        native         = writer->file->cls;
        watching       = *native;
        watching.close = close_file;
        watching.write = write_watched;
        if (native->write_vector)
            watching.write_vector = write_list;
        plain       = watching;
        plain.write = stage_piece;
        plain.write_vector = NULL, plain.write_selection = NULL;
        plain.read = read_first;
        plain.read_vector = native->read_vector ? read_list_first : NULL;
        plain.read_selection = native->read_selection ? read_selection_first : NULL;
        chunks       = watching;
        chunks.write = write_chunks;
        if (native->write_vector)
            chunks.write_vector = stage_list;
    }
    cv_methods_stage(writer, CV_STAGE_NOTHING);
}

void cv_methods_stage(struct cv_writer *writer, enum cv_way way)
{
    writer->file->cls = way == CV_STAGE_PLAIN ? &plain : way == CV_STAGE_CHUNKS ? &chunks : &watching;
}
