/* The file driver under HDF5's native connector. It does what HDF5's own `sec2` driver does (which it keeps
   below for opening, locking and error messages), and takes reads and writes by way of stage and reader. */
#ifndef CACHEVOL_DRIVER_H
#define CACHEVOL_DRIVER_H

#include "api.h"

#include <stdbool.h>

struct cv_driver_info {
    bool write, read;
};

/* Registers the driver with the library. Returns 0, or -1. */
int cv_driver_register(void);

/* Whether the access list asks for this driver, or for sec2. */
bool cv_driver_is_ours(hid_t fapl);
bool cv_driver_is_sec2(hid_t fapl);

/* Puts this driver into an access list. */
int cv_driver_set(hid_t fapl, bool write, bool read);

/* What HDF5 is doing, as the connector knows: flushing all of a file; opening or creating one. */
extern bool cv_flushing_all, cv_opening;

/* While set, a file that is opened is about to be emptied: what a killed program left for it is void. */
extern bool cv_emptying;

#endif
