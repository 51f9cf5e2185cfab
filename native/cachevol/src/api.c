#include "api.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

struct cv_api h5;

int cv_api_load(const void *caller, char *why, size_t room)
{
    Dl_info where;
    void   *library = NULL;

    if (dladdr(caller, &where) && where.dli_fname)
        library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        library = dlopen(NULL, RTLD_NOW); /* HDF5 is part of the program */
    if (!library) {
        snprintf(why, room, "%s", dlerror());
        return -1;
    }
#define FIND(name)                                                                                           \
    if (!(*(void **)&h5.name = dlsym(library, #name))) {                                                     \
        snprintf(why, room, "%s has no " #name ": it is older than HDF5 1.14",                               \
                 where.dli_fname ? where.dli_fname : "libhdf5");                                             \
        return -1;                                                                                           \
    }
    CV_API(FIND)
#undef FIND
    const struct {
        hid_t      *to;
        const char *name;
    } numbers[] = {{&h5.error_class, "H5E_ERR_CLS_g"}, {&h5.major_io, "H5E_IO_g"},
                   {&h5.major_file, "H5E_FILE_g"},     {&h5.minor_write, "H5E_WRITEERROR_g"},
                   {&h5.minor_open, "H5E_CANTOPENFILE_g"},
                   {&h5.transfer, "H5P_LST_DATASET_XFER_ID_g"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const hid_t *value = dlsym(library, numbers[i].name);
        *numbers[i].to     = value ? *value : H5I_INVALID_HID;
    }
    h5.library                   = library;
    *(void **)&h5.driver_query = dlsym(library, "H5FDdriver_query");
    return 0;
}

hid_t cv_errors_keep(void)
{
    return h5.H5Eget_num(H5E_DEFAULT) > 0 ? h5.H5Eget_current_stack() : H5I_INVALID_HID;
}

void cv_errors_back(hid_t kept)
{
    if (kept >= 0)
        h5.H5Eset_current_stack(kept);
    else
        h5.H5Eclear2(H5E_DEFAULT);
}

static void push(const char *where, unsigned line, hid_t major, hid_t minor, const char *format, va_list values)
{
    char text[5000];

    vsnprintf(text, sizeof text, format, values);
    h5.H5Epush2(H5E_DEFAULT, "cachevol", where, line, h5.error_class, major, minor, "%s", text);
}

void cv_error_write(const char *where, unsigned line, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    push(where, line, h5.major_io, h5.minor_write, format, values);
    va_end(values);
}

void cv_error_open(const char *where, unsigned line, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    push(where, line, h5.major_file, h5.minor_open, format, values);
    va_end(values);
}
