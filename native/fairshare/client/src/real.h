// The functions that this library stands in front of.
#ifndef FAIRSHARE_REAL_H
#define FAIRSHARE_REAL_H

#include <dlfcn.h>

// The next definition of `name` behind ours: libc's, or another preloaded library's. Threads that look for it at the
// same time find the same.
#define REAL(name)                                                              \
    __extension__({                                                             \
        static __typeof__(&name) known_##name;                                  \
        __typeof__(&name) real_##name = __atomic_load_n(&known_##name, __ATOMIC_RELAXED); \
        if (!real_##name) {                                                     \
            real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);           \
            __atomic_store_n(&known_##name, real_##name, __ATOMIC_RELAXED);     \
        }                                                                       \
        real_##name;                                                            \
    })

// A call on a descriptor: `ours` where it is a served file, which is `d` there.
#define BY_FD(type, name, params, args, ours)      \
    EXPORT type name params {                      \
        struct description *d = fs_get(fd);        \
        return d ? ours : REAL(name) args;         \
    }

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(of) __attribute__((visibility("default"), alias(#of)))

#endif
