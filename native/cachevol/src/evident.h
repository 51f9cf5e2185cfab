/* Whether a file's times would tell of every change to it. */
#ifndef CACHEVOL_EVIDENT_H
#define CACHEVOL_EVIDENT_H

#include <stdbool.h>

enum cv_evident {
    CV_EVIDENT,
    CV_EVIDENT_LATER, /* not yet: what a mapping wrote may change again unseen until it is written out, which has begun */
    CV_EVIDENT_NEVER
};

/* A store into a page of a shared mapping changes the file's times only where the kernel sees it: the first time, and
   the first time after the page was written out. So from a moment on at which none is dirty, all changes are seen. Where
   one is, it is asked to be written out; with `wait` until that is done. `*why` is a sentence's end for CV_EVIDENT_NEVER. */
enum cv_evident cv_changes_are_evident(int file, bool wait, const char **why);

#endif
