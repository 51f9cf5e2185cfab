#include "mpi_write.h"
#include "mpi_areas.h"
#include "mpi_methods.h"
#include "mpi_open.h"
#include "reasons.h"
#include "stats.h"

#include <stdlib.h>
#include <string.h>

#define WORTH      (UINT64_C(64) << 10) /* bytes for each process from which on a write is staged */
#define FINE       (16 << 10)         /* bytes: processes that write more than one piece of less had better let MPI do it */
#define PROBE      64                 /* writes after which one is staged although the base storage was as fast */

/* ---- Datasets and selections. ---- */

/* How a dataset is stored, which stays as it is. */
static void look_at_storage(struct cv_object *o, hid_t dxpl)
{
    struct cv_storage      *s    = o->storage;
    H5VL_dataset_get_args_t list = {.op_type = H5VL_DATASET_GET_DCPL}, type = {.op_type = H5VL_DATASET_GET_TYPE};

    s->plain = s->late = false;
    if (h5.H5VLdataset_get(o->under, o->vol, &list, dxpl, NULL) >= 0) {
        hid_t            dcpl   = list.args.get_dcpl.dcpl_id;
        H5D_layout_t     layout = h5.H5Pget_layout(dcpl);
        H5D_alloc_time_t when   = H5D_ALLOC_TIME_LATE;
        s->chunked          = layout == H5D_CHUNKED;
        s->filtered         = h5.H5Pget_nfilters(dcpl) != 0;
        s->late             = s->filtered && (h5.H5Pget_alloc_time(dcpl, &when) < 0 || when == H5D_ALLOC_TIME_LATE);
        s->plain            = (layout == H5D_CONTIGUOUS && !s->filtered && h5.H5Pget_external_count(dcpl) == 0) ||
                   (s->chunked && h5.H5Pget_chunk(dcpl, H5S_MAX_RANK, s->chunk) > 0);
        h5.H5Pclose(dcpl);
    }
    if (h5.H5VLdataset_get(o->under, o->vol, &type, dxpl, NULL) >= 0) {
        hid_t id        = type.args.get_type.type_id;
        s->plain        = s->plain && cv_elements_are_whole(id);
        s->element_size = h5.H5Tget_size(id);
        h5.H5Tclose(id);
    }
    s->known = true;
}

/* Where a dataset lies. One without a name is asked again: it has a name later, or goes when it is closed. */
static bool look_at(struct cv_object *o, hid_t dxpl)
{
    H5O_info2_t info = {0};

    if (!o->storage && !(o->storage = calloc(1, sizeof *o->storage)))
        return false;
    struct cv_storage *s = o->storage;
    if (s->known && s->named)
        return true;
    hid_t errors = cv_errors_keep();
    if (cv_object_info(o, H5I_DATASET, dxpl, &info)) {
        s->file  = info.fileno;
        s->named = info.rc > 0;
        memcpy(&s->address, &info.token, sizeof s->address);
    }
    if (!s->known)
        look_at_storage(o, dxpl);
    cv_errors_back(errors);
    return true;
}

static struct cv_writer *writer_of(struct cv_object *dataset, hid_t dxpl)
{
    return look_at(dataset, dxpl) ? cv_writer_of_number(dataset->storage->file) : NULL;
}

struct selection {
    struct box box;
    uint64_t   bytes;
    bool       known;  /* which it is */
    bool       block;  /* all of the box, in pieces that are not fine */
};

static struct selection selected(struct cv_object *o, hid_t file_space, hid_t dxpl)
{
    struct selection        chosen = {.box = cv_box_nothing, .known = true, .block = true};
    H5VL_dataset_get_args_t get    = {.op_type = H5VL_DATASET_GET_SPACE};
    hsize_t                 from[H5S_MAX_RANK] = {0}, to[H5S_MAX_RANK] = {0}, extent[H5S_MAX_RANK] = {0};
    bool                    whole = file_space <= H5S_PLIST; /* the smaller numbers stand for all, or for something else */
    hid_t                   errors = cv_errors_keep();

    if (whole)
        file_space = h5.H5VLdataset_get(o->under, o->vol, &get, dxpl, NULL) < 0 ? -1 : get.args.get_space.space_id;
    int      rank   = h5.H5Sget_simple_extent_ndims(file_space);
    hssize_t points = h5.H5Sget_select_npoints(file_space);
    if (rank < 1 || points < 0 || h5.H5Sget_simple_extent_dims(file_space, extent, NULL) < 0 ||
        (points > 0 && h5.H5Sget_select_bounds(file_space, from, to) < 0)) { /* the others must take it for everything */
        chosen.known = chosen.block = false;
        memset(chosen.box.low, 0, sizeof chosen.box.low);
        memset(chosen.box.high, 0xff, sizeof chosen.box.high);
    } else if (points > 0) {
        uint64_t                 volume = 1, piece = o->storage->element_size;
        const struct cv_storage *s      = o->storage;
        for (int d = 0; d < rank; d++)
            volume *= to[d] - from[d] + 1;
        for (int d = rank - 1, on = 1; d >= 0 && on; d--) {
            uint64_t length = to[d] - from[d] + 1, full = s->chunked ? s->chunk[d] : extent[d];
            length          = length < full ? length : full;
            piece *= length;
            on = length == full;
        }
        for (int d = 0; d < CV_DIMENSIONS; d++) {
            hsize_t side = d < rank && s->filtered ? s->chunk[d] : 1; /* compressed chunks are read and written whole */
            chosen.box.low[d]  = d < rank ? from[d] / side * side : 0;
            chosen.box.high[d] = d < rank ? to[d] / side * side + side - 1 : 0;
        }
        chosen.bytes = (uint64_t)points * s->element_size;
        chosen.block = volume == (uint64_t)points && (piece >= FINE || piece == chosen.bytes) &&
                       h5.H5Sget_select_type(file_space) != H5S_SEL_POINTS;
    }
    if (whole && file_space >= 0)
        h5.H5Sclose(file_space);
    cv_errors_back(errors);
    return chosen;
}

/* ---- What the processes tell each other before a collective write. ---- */

enum { CAN = 1, FAST = 2 };           /* of a vote */
enum { DISJOINT = 1, CLEAR = 2 };     /* of what each finds in all of them */

struct vote {
    uint64_t   flags, dataset, bytes;
    struct box box;
};

_Static_assert(sizeof(struct vote) == CV_VOTE_BYTES, "room for votes");

#define WORDS ((int)(sizeof(struct vote) / sizeof(uint64_t)))

enum answer { NATIVE, STAGE, FAILED };

static const char FINE_PIECES[] = "in part: many small pieces, or selections that are no blocks, which MPI puts together";
static const char OVERLAP[]     = "in part: what the processes write overlaps";
static const char SMALL[]       = "in part: less than 64 KiB for each process";
static const char OTHERS[]      = "in part: another process cannot stage, or writes to another dataset";

/* Why a dataset is written the way it is without the connector, by one process alone or by all, or NULL. */
static const char *refusal(const struct cv_writer *writer, const struct cv_storage *storage, bool alone)
{
    if (writer->off)
        return "something was deleted, made atomic, asked for its handle, or opened once more before";
    if (!storage->plain)
        return "in part: data in external files, or of variable length";
    if (storage->filtered && alone)
        return "in part: compressed data, which HDF5 lets processes only write together";
    if (storage->late)
        return "in part: compressed data whose chunks are all made by the first write (H5D_ALLOC_TIME_LATE)";
    if (storage->filtered && writer->lists == CV_NO)
        return "in part: compressed data, which this HDF5 (an older 1.14) does not write as lists of chunks";
    return storage->named ? NULL : "in part: a dataset that has no name yet";
}

/* All processes come to the same answer. */
static enum answer agree(struct cv_writer *writer, struct cv_object *o, hid_t file_space, hid_t dxpl)
{
    struct cv_areas  *areas  = writer->areas;
    struct cv_storage *s      = o->storage;
    struct selection  chosen = selected(o, file_space, dxpl);
    struct vote       mine   = {0, s->address, chosen.bytes, chosen.box}, *all = writer->votes;
    uint64_t          found = DISJOINT | CLEAR, agreed = 0, bytes = 0, flags = CAN, fast = 0;
    const char       *refused = refusal(writer, s, false);
    struct box        whole   = cv_box_nothing;

    if (!refused && (s->filtered ? chosen.known : chosen.block))
        mine.flags |= CAN;
    if (cv_base_is_fast())
        mine.flags |= FAST;
    if (mpi.Allgather(&mine, WORDS, CV_UINT64, all, WORDS, CV_UINT64, writer->comm))
        return FAILED;
    for (int rank = 0; rank < writer->size; rank++) {
        flags &= all[rank].dataset == all[0].dataset ? all[rank].flags : 0;
        fast |= all[rank].flags & FAST;
        bytes += all[rank].bytes;
        cv_box_widen(&whole, &all[rank].box);
        if (rank == writer->rank)
            continue;
        if (!s->filtered && cv_boxes_meet(&mine.box, &all[rank].box))
            found &= ~(uint64_t)DISJOINT;
        if (cv_areas_own(areas, s->address, &all[rank].box))
            found &= ~(uint64_t)CLEAR;
    }
    /* Of compressed data it is HDF5 that finds out who writes which chunk, and which part of that is whose. Chunks that
       are staged must be in the file before they are read, moved or written again, whoever has them. */
    if (s->filtered && (!writer->learned || cv_areas_own(areas, s->address, &whole)))
        found &= ~(uint64_t)CLEAR;
    if (areas->owns == CV_AREAS_MOST || areas->other == CV_AREAS_MOST)
        found &= ~(uint64_t)CLEAR;
    if (mpi.Allreduce(&found, &agreed, 1, CV_UINT64, CV_BAND, writer->comm))
        return FAILED;
    if (!(flags & CAN) && !refused)
        refused = chosen.block || s->filtered ? OTHERS : FINE_PIECES;
    else if (!refused)
        refused = !(agreed & DISJOINT) ? OVERLAP : bytes < WORTH * (uint64_t)writer->size ? SMALL : NULL;
    if (!refused && fast && ++areas->votes % PROBE)
        refused = cv_base_fast;
    bool stage = !refused;
    if (refused && bytes)
        cv_because(writer->path, cv_not_staged, refused, writer->rank == 0 && refused != SMALL && refused != cv_base_fast);
    if ((!stage || !(agreed & CLEAR)) && cv_writer_settle(writer))
        return FAILED;
    return stage ? STAGE : NATIVE;
}

/* Notes where the data of a staged call lie, for whoever comes to them before all have settled. Any of the processes may
   have what is `shared`. */
static void note(struct cv_writer *writer, bool shared)
{
    struct cv_areas   *areas = writer->areas;
    const struct vote *all   = writer->votes;
    struct area        mine  = {all[writer->rank].dataset, all[writer->rank].box, writer->calls};
    struct area        rest  = {mine.dataset, cv_box_nothing, writer->calls};

    for (int rank = 0; rank < writer->size; rank++)
        if (rank != writer->rank || shared)
            cv_box_widen(&rest.box, &all[rank].box);
    if (shared)
        mine.box = rest.box;
    if (!cv_box_is_nothing(&mine.box))
        areas->own[areas->owns++] = mine;
    if (!cv_box_is_nothing(&rest.box))
        areas->others[areas->other++] = rest;
}

/* ---- What one process does alone. ---- */

static int alone(struct cv_object *o, hid_t file_space, hid_t dxpl)
{
    struct cv_writer *writer = writer_of(o, dxpl);
    struct cv_areas  *areas  = writer ? writer->areas : NULL;
    if (!writer || (writer->settled == writer->calls && !areas->owns))
        return 0;
    struct box       box   = selected(o, file_space, dxpl).box;
    if (cv_areas_own(areas, o->storage->address, &box)) {
        if (cv_writer_drain(writer))
            return -1;
        areas->owns = 0;
    }
    for (size_t i = areas->other; i-- > 0;) {
        struct area *each = &areas->others[i];
        if (each->dataset != o->storage->address || !cv_boxes_meet(&each->box, &box))
            continue;
        if (cv_writer_wait(writer, each->call))
            return -1;
        *each = areas->others[--areas->other];
    }
    return 0;
}

static int all_alone(size_t count, void *datasets[], const hid_t file_spaces[], hid_t dxpl)
{
    for (size_t i = 0; i < count; i++)
        if (alone(datasets[i], file_spaces[i], dxpl))
            return -1;
    return 0;
}

/* Whether what this process is about to write alone is staged; then its area is noted. */
static struct cv_writer *stages_alone(struct cv_object *o, hid_t file_space, hid_t dxpl)
{
    struct cv_writer *writer = writer_of(o, dxpl);

    if (!writer)
        return NULL;
    struct cv_areas *areas   = writer->areas;
    struct selection chosen  = selected(o, file_space, dxpl);
    const char      *refused = !writer->independent
                                   ? "in part: written by one process alone (HDF5_CACHE_INDEPENDENT=yes, if all flush before "
                                     "another one touches it)"
                                   : refusal(writer, o->storage, true);
    if (!refused && !chosen.block)
        refused = FINE_PIECES;
    if (!refused && cv_base_is_fast() && ++areas->tries % PROBE)
        refused = cv_base_fast;
    if (refused || chosen.bytes < WORTH) {
        if (refused && chosen.bytes)
            cv_because(writer->path, cv_not_staged, refused, writer->rank == 0 && refused != cv_base_fast);
        return NULL;
    }
    if (areas->owns == CV_AREAS_MOST) {
        if (cv_stage_drain(writer->stage))
            return NULL; /* the next flush says so */
        areas->owns = 0;
    }
    areas->own[areas->owns++] = (struct area){o->storage->address, chosen.box, writer->calls};
    return writer;
}

/* Whether HDF5 writes compressed data as lists shows when it does so first. Nothing else is staged at that time, which
   MPI could touch if it wrote them together. */
static void learn(struct cv_writer *writer)
{
    if (writer->learned || cv_mpi_all(writer->comm, writer->lists == CV_UNKNOWN)) /* nothing was to be written */
        return;
    if (!cv_mpi_all(writer->comm, writer->lists == CV_YES))
        writer->lists = CV_NO;
    writer->learned = true;
}

/* ---- Hooks. ---- */

struct cv_mpi_write cv_mpi_write_begins(size_t count, void *datasets[], const hid_t file_spaces[], hid_t dxpl)
{
    struct cv_mpi_write write = {NULL, false, false, false};

    if (!count || !cv_writers_any())
        return write;
    if (!cv_mpi_is_collective(dxpl)) {
        write.bad    = all_alone(count, datasets, file_spaces, dxpl);
        write.writer = write.bad || count > 1 ? NULL : stages_alone(datasets[0], file_spaces[0], dxpl);
        if (write.writer) {
            cv_methods_stage(write.writer, CV_STAGE_PLAIN);
            CV_COUNT(staged_alone, 1);
        }
        return write;
    }
    struct cv_writer *writer = writer_of(datasets[0], dxpl);
    if (!writer)
        return write;
    if (count > 1) {
        write.bad = cv_writer_settle(writer);
        return write;
    }
    enum answer answer = agree(writer, datasets[0], file_spaces[0], dxpl);
    write.bad          = answer == FAILED;
    if (answer == STAGE) {
        write.writer = writer, write.together = true;
        write.compressed = ((struct cv_object *)datasets[0])->storage->filtered;
        if (!write.compressed)
            cv_mpi_set_collective(dxpl, false);
        cv_methods_stage(writer, write.compressed ? CV_STAGE_CHUNKS : CV_STAGE_PLAIN);
        CV_COUNT(staged_together, 1);
    }
    return write;
}

void cv_mpi_write_ends(struct cv_mpi_write write, hid_t dxpl)
{
    struct cv_writer *writer = write.writer;

    if (!writer)
        return;
    cv_methods_stage(writer, CV_STAGE_NOTHING);
    if (!write.together)
        return;
    if (write.compressed) {
        learn(writer);
    } else {
        cv_mpi_set_collective(dxpl, true);
        cv_stage_called(writer->stage, ++writer->calls, writer->emptied);
    }
    note(writer, write.compressed);
}

/* HDF5 makes the chunks of a dataset that has none when a parallel program first opens it. The processes fill them
   together, and MPI then rewrites what lies between: what was staged there must be in the file. Each process brings its
   own; they wait for each other before they fill. (There is no asking whether it has chunks without opening it.) */
struct cv_mpi_open cv_mpi_open_begins(struct cv_object *object, const H5VL_loc_params_t *where, hid_t dxpl)
{
    struct cv_mpi_open opening = {NULL, 0};
    H5O_info2_t        info;

    if (!cv_writers_any())
        return opening;
    if (where->type == H5VL_OBJECT_BY_TOKEN) { /* of that HDF5 tells nothing */
        info.token     = *where->loc_data.loc_by_token.token;
        opening.writer = cv_writer_of(object, where->obj_type, dxpl);
    } else if (cv_object_info_at(object, where, dxpl, &info) && info.type == H5O_TYPE_DATASET) {
        opening.writer = cv_writer_of_number(info.fileno);
    }
    if (!opening.writer)
        return opening;
    memcpy(&opening.dataset, &info.token, sizeof opening.dataset);
    if (cv_areas_known(opening.writer->areas, opening.dataset))
        opening.writer = NULL;
    else
        cv_stage_drain(opening.writer->stage); /* where it fails, the next flush says so */
    return opening;
}

void cv_mpi_open_ends(struct cv_mpi_open opening, bool opened)
{
    if (opening.writer && opened)
        cv_areas_know(opening.writer->areas, opening.dataset);
}

void cv_mpi_created(struct cv_object *dataset, hid_t dxpl)
{
    struct cv_writer *writer = cv_writers_any() ? writer_of(dataset, dxpl) : NULL;

    if (writer)
        cv_areas_know(writer->areas, dataset->storage->address);
}

int cv_mpi_before_read(size_t count, void *datasets[], const hid_t file_spaces[], hid_t dxpl)
{
    if (!count || !cv_writers_any())
        return 0;
    if (!cv_mpi_is_collective(dxpl))
        return all_alone(count, datasets, file_spaces, dxpl);
    struct cv_writer *writer = writer_of(datasets[0], dxpl);
    return writer ? cv_writer_settle(writer) : 0;
}

int cv_mpi_settle(struct cv_object *object, H5I_type_t type, hid_t dxpl)
{
    struct cv_writer *writer = cv_writers_any() ? cv_writer_of(object, type, dxpl) : NULL;

    return writer ? cv_writer_settle(writer) : 0;
}

int cv_mpi_closing(struct cv_object *file, hid_t dxpl)
{
    struct cv_writer *writer = cv_writers_any() ? cv_writer_of_file(file, dxpl) : NULL;

    if (!writer || !cv_writer_settle(writer))
        return 0;
    writer->chunks = 0;
    return -1;
}

int cv_mpi_deleting(struct cv_object *object, H5I_type_t type, hid_t dxpl)
{
    if (cv_writers_any())
        cv_writers_stop();
    return cv_mpi_settle(object, type, dxpl);
}

int cv_mpi_before_any(struct cv_object *object, H5I_type_t type, hid_t dxpl)
{
    struct cv_writer *writer = cv_writers_any() ? cv_writer_of(object, type, dxpl) : NULL;

    if (!writer || (writer->settled == writer->calls && !writer->areas->owns))
        return 0;
    return cv_writer_drain(writer) || (writer->settled != writer->calls && cv_writer_wait(writer, writer->calls)) ? -1 : 0;
}
