/* Calls of HDF5 that must succeed; each program says itself what it does where one fails. */
static void failed(const char *what);

#define GOOD(call)                                                                                           \
    do                                                                                                       \
        if ((call) < 0)                                                                                      \
            failed(#call);                                                                                   \
    while (0)
