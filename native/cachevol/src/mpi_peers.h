/* What the nodes of a job have of one file, shared by one-sided MPI.

   Each process exposes its node's copy in a window, for reading. A directory in a second window has an entry for each
   block of the file: 0, or 1 + the number of a node whose copy holds it. It is spread over the processes by slots of
   CV_SLOT blocks. Entries are made after the block is in the copy, and copies in use lose nothing, so that an entry
   that was once seen holds as long as the windows do. No process waits for another one outside H5Fopen: a neighbour
   that does not answer in time (its MPI library may need its processor for that) is passed over for a while, and
   what arrives late is thrown away. */
#ifndef CACHEVOL_MPI_PEERS_H
#define CACHEVOL_MPI_PEERS_H

#include "copy.h"

struct cv_peers;

/* Makes the windows for a file that all processes of `comm` have just opened; all take part. Takes the communicator,
   unless it returns NULL: then nothing is shared, since a process has no copy, or they see different files, or all
   are on one node. */
struct cv_peers *cv_peers_open(int comm, struct cv_copy *copy);

/* This process no longer reads the file. Waits for nobody: the windows go once all processes are known to be done, at
   the next H5Fopen with the same processes, or in MPI_Finalize. */
void cv_peers_close(struct cv_peers *peers);
void cv_peers_tidy(int comm);

/* Brings bytes from `address`, of blocks that this node's copy lacks, into `data` from a neighbour that has them, and
   then puts them into this node's copy too. Returns how many it brought, or 0: then no neighbour is known to have the
   first `*size` bytes. `base_rate`: bytes a second of the base storage, 0 while unknown. */
uint64_t cv_peers_read(struct cv_peers *peers, char *data, uint64_t *size, uint64_t address, uint64_t base_rate);

/* Tells the neighbours of what was read from the base file, as soon as it is in the copy. */
void cv_peers_note(struct cv_peers *peers, uint64_t address, uint64_t size);

/* Waits until what was read so far is in the copies and the neighbours can know it. */
void cv_peers_settle(struct cv_peers *peers);

#endif
