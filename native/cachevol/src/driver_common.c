#include "driver_common.h"
#include "store.h"

#include <string.h>

bool cv_driver_closed;

haddr_t cv_driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct cv_driver_file *)file)->eoa;
}

haddr_t cv_driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct cv_driver_file *)file)->eof;
}

herr_t cv_driver_ctl(H5FD_t *file, uint64_t op, uint64_t flags, const void *input, void **output)
{
    (void)file, (void)op, (void)input, (void)output;
    return flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG ? -1 : 0;
}

int cv_driver_get(struct cv_driver_file *file, haddr_t address, size_t size, void *data)
{
    ssize_t got = file->reader ? cv_reader_read(file->reader, data, size, address)
                               : cv_read_all(file->fd, data, size, (off_t)address);

    if (got < 0)
        return -1;
    if ((size_t)got < size) /* behind the end of the file, not of the address space */
        memset((char *)data + got, 0, size - (size_t)got);
    return 0;
}

int cv_driver_know(hid_t *id, const H5FD_class_t *table)
{
    if (*id < 0 || h5.H5Iis_valid(*id) <= 0)
        *id = h5.H5FDregister(table);
    return *id < 0 ? -1 : 0;
}

bool cv_driver_asked(hid_t fapl, hid_t id)
{
    return id >= 0 && h5.H5Pget_driver(fapl) == id;
}
