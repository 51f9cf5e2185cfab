/* Whether a file's times would tell of every change to it. */
#ifndef CACHEVOL_EVIDENT_H
#define CACHEVOL_EVIDENT_H

#include <stdbool.h>

enum cv_evident {
    CV_EVIDENT,
    CV_EVIDENT_LATER, /* not yet: somebody has it open for writing, or what a mapping wrote is not written out, which has begun */
    CV_EVIDENT_NEVER
};

/* A store into a page of a shared mapping changes the file's times only where the kernel sees it: the first time, and
   the first time after the page was written out. So from a moment on at which none is dirty, all changes are seen. Where
   one is, it is asked to be written out; with `wait` until that is done. A write changes the times when it begins: one that lasts,
   since its data come from slow storage or go there directly, changes the file behind old times. So nobody may have the
   file open for writing, as far as the node tells (not of other users' files, nor of other nodes). `*why` is a sentence's
   end where it is not CV_EVIDENT. */
enum cv_evident cv_changes_are_evident(int file, bool wait, const char **why);

#endif
