/* The metadata personality: mdtest's phases. */
#ifndef IOKERNEL_MD_H
#define IOKERNEL_MD_H

#include "job.h"

extern const struct personality md_personality;

#endif
