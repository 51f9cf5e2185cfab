// The functions that this library stands in front of.
#ifndef FAIRSHARE_REAL_H
#define FAIRSHARE_REAL_H

#include <dlfcn.h>

// The next definition of `name` behind ours: libc's, or another preloaded library's.
#define REAL(name)                                                     \
    __extension__({                                                    \
        static __typeof__(&name) real_##name;                          \
        if (!real_##name)                                              \
            real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);  \
        real_##name;                                                   \
    })

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(of) __attribute__((visibility("default"), alias(#of)))

#endif
