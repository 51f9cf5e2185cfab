/* The version; the Makefile appends a digest of the sources, so that a changed engine is a different engine. */
#ifndef IOKERNEL_VERSION_H
#define IOKERNEL_VERSION_H

#ifndef IOKERNEL_VERSION
#define IOKERNEL_VERSION "0+unversioned"
#endif

#endif
