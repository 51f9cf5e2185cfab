/* What one process has of cachevol: settings and the node-local folder, opened when first needed. */
#ifndef CACHEVOL_SESSION_H
#define CACHEVOL_SESSION_H

#include "store.h"

/* Reads the settings again, from the file (or NULL) and the environment. Says on stderr what is wrong. */
void cv_session_configure(const char *file);

/* The folder, or NULL where there is none: then everything is as without the connector. */
struct cv_store *cv_session_store(void);

#endif
