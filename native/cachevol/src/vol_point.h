/* Points at which a file is whole, as the connector makes them: by flushing all that HDF5 holds of the file. */
#ifndef CACHEVOL_VOL_POINT_H
#define CACHEVOL_VOL_POINT_H

#include "object.h"

#include <stdbool.h>

/* Before a call that closes an object: may free space where something was deleted before or, for datasets, where
   chunks are compressed. */
void cv_point_closing(void);
/* Before a call that may delete what is open still: from then on closing may free space. */
void cv_point_deleting(void);

/* Before an access to datasets. */
void cv_point_before_read(size_t count, void *datasets[], hid_t dxpl);
void cv_point_before_write(size_t count, void *datasets[], const hid_t spaces[], const hid_t file_spaces[], hid_t dxpl);
void cv_point_before_close(struct cv_object *dataset);
/* After a write that succeeded. */
void cv_point_after_write(size_t count, void *datasets[], hid_t dxpl);

/* After a dataset was created; after a hard link was: what was written to a dataset that had no name before it counts
   from then on. */
void cv_point_created(struct cv_object *dataset, const char *name);
void cv_point_after_link(struct cv_object *place, H5I_type_t type, hid_t dxpl);

/* After any other call that changed the file of the object: a point where one is due whatever it costs. */
void cv_point_if_pressed(struct cv_object *object, H5I_type_t type, hid_t dxpl);

/* Brings all of the object's file into the base file. */
herr_t cv_point_flush_all(struct cv_object *object, H5I_type_t type, hid_t dxpl);
/* After a flush of one object only, where something is staged: the rest follows. */
herr_t cv_point_after_flush(herr_t outcome, struct cv_object *object, H5I_type_t type, hid_t dxpl);

/* Calls around one that flushes a whole file. */
void   cv_point_flush_begins(void);
herr_t cv_point_flush_ends(herr_t outcome, bool drain);

#endif
