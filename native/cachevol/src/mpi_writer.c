#include "mpi_writer.h"
#include "reasons.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOKS  UINT64_C(200000) /* ns between looks at another process's counter */

static struct cv_writer *writers;

void cv_writer_add(struct cv_writer *writer)
{
    writer->next = writers;
    writers      = writer;
}

void cv_writer_free(struct cv_writer *writer)
{
    struct cv_writer **at   = &writers;
    int                over = 0;

    close(writer->base);
    mpi.Finalized(&over);
    if (!over) {
        mpi.Win_unlock_all(writer->window);
        mpi.Win_free(&writer->window);
        mpi.Comm_free(&writer->comm);
    }
    while (*at != writer)
        at = &(*at)->next;
    *at = writer->next;
    cv_areas_free(writer->areas);
    free(writer->votes);
    free(writer);
}

void cv_writer_because(const struct cv_writer *writer, const char *why)
{
    cv_because(writer->path, cv_not_staged, why, writer->rank == 0);
}

/* ---- Finding. ---- */

struct cv_writer *cv_writer_of_driver(const H5FD_t *file)
{
    struct cv_writer *writer = writers;

    while (writer && writer->file != file)
        writer = writer->next;
    return writer;
}

unsigned long cv_file_number(void *under, hid_t vol, hid_t dxpl)
{
    unsigned long        number = 0;
    H5VL_file_get_args_t get    = {.op_type = H5VL_FILE_GET_FILENO};

    get.args.get_fileno.fileno = &number;
    return h5.H5VLfile_get(under, vol, &get, dxpl, NULL) < 0 ? 0 : number;
}

bool cv_writers_any(void)
{
    return writers;
}

struct cv_writer *cv_writer_of_number(unsigned long number)
{
    struct cv_writer *writer = writers;

    while (writer && writer->file->fileno != number)
        writer = writer->next;
    return writer;
}

struct cv_writer *cv_writer_of_file(struct cv_object *file, hid_t dxpl)
{
    return writers ? cv_writer_of_number(cv_file_number(file->under, file->vol, dxpl)) : NULL;
}

struct cv_writer *cv_writer_of(struct cv_object *object, H5I_type_t type, hid_t dxpl)
{
    H5O_info2_t info;

    if (!writers)
        return NULL;
    if (type == H5I_FILE)
        return cv_writer_of_file(object, dxpl);
    return cv_object_info(object, type, dxpl, &info) ? cv_writer_of_number(info.fileno) : NULL;
}

/* ---- Settling and waiting. ---- */

int cv_writer_drain(struct cv_writer *writer)
{
    if (!cv_stage_drain(writer->stage))
        return 0;
    CV_WRITE_ERROR("staged data could not be written to the file: errno = %d, error message = '%s'", errno,
                   strerror(errno));
    return -1;
}

int cv_writer_settle(struct cv_writer *writer)
{
    if (writer->settled == writer->calls && !writer->independent)
        return 0;
    bool good = !cv_writer_drain(writer), whole = cv_mpi_all(writer->comm, good);
    if (whole) {
        writer->settled = writer->calls;
        writer->areas->owns = writer->areas->other = 0;
    } else if (good) {
        CV_WRITE_ERROR("data that another process staged could not be written to the file: see its error");
    }
    return whole ? 0 : -1;
}

/* Has another process's thread bring its data to the file even where its program asked to hold them back. */
static bool ask(struct cv_writer *writer, int rank, uint64_t call)
{
    return !mpi.Accumulate(&call, 1, CV_UINT64, rank, CV_STAGE_ASKED * sizeof call, 1, CV_UINT64, CV_MAX, writer->window) &&
           !mpi.Win_flush_all(writer->window);
}

int cv_writer_wait(struct cv_writer *writer, uint64_t call)
{
    for (int rank = 0; rank < writer->size; rank++) {
        uint64_t   there   = 0;
        cv_request request = CV_REQUEST_NULL;
        bool       asked   = false;
        while (rank != writer->rank) {
            if (mpi.Rget(&there, 1, CV_UINT64, rank, 0, 1, CV_UINT64, writer->window, &request) ||
                mpi.Wait(&request, CV_STATUS_IGNORE))
                there = CV_STAGE_FAILED;
            if (there & CV_STAGE_FAILED) {
                CV_WRITE_ERROR("process %d could not write to the file what it had staged", rank);
                return -1;
            }
            if (there >= call)
                break;
            asked = asked || ask(writer, rank, call);
            nanosleep(&(struct timespec){.tv_nsec = LOOKS}, NULL);
        }
    }
    return 0;
}

void cv_writers_opening(const char *name)
{
    struct stat now;

    if (!writers || stat(name, &now))
        return;
    for (struct cv_writer *writer = writers; writer; writer = writer->next)
        if (writer->device == now.st_dev && writer->inode == now.st_ino) {
            writer->off  = true;
            hid_t errors = cv_errors_keep();
            if (!cv_writer_drain(writer) && writer->settled != writer->calls) /* else the next flush says so */
                cv_writer_wait(writer, writer->calls);
            cv_errors_back(errors);
        }
}

void cv_writers_stop(void)
{
    for (struct cv_writer *writer = writers; writer; writer = writer->next) {
        writer->off = true;
        cv_stage_drain(writer->stage); /* where it fails, the next flush says so */
    }
}
