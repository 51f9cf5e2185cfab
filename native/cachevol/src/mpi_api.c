#include "mpi_api.h"

#include <dlfcn.h>
#include <string.h>

struct cv_mpi_api mpi;

bool cv_mpi_asked(hid_t fapl)
{
    unsigned long features = 0;
    hid_t         errors, driver;

    if (!h5.driver_query || fapl == H5P_DEFAULT)
        return false;
    errors = cv_errors_keep();
    driver = h5.H5Pget_driver(fapl);
    if (driver < 0 || h5.driver_query(driver, &features) < 0)
        features = 0;
    cv_errors_back(errors);
    if (!(features & H5FD_FEAT_HAS_MPI))
        return false;
    /* Of the drivers that use MPI, the one that is called so: to ask for its number would start MPI in other programs. */
    hid_t (*init)(void) = (hid_t(*)(void))dlsym(h5.library, "H5FD_mpio_init"); /* 1.14 */
    const hid_t *number = dlsym(h5.library, "H5FD_MPIO_id_g");                  /* 2.x */
    return driver == (number ? *number : init ? init() : H5I_INVALID_HID);
}

static bool find(void)
{
    char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH */
    int  length = 0;

#define FIND(type, name, arguments)                                                                          \
    if (!(*(void **)&mpi.name = dlsym(h5.library, "MPI_" #name)))                                            \
        return false;
    CV_MPI(FIND)
#undef FIND
    *(void **)&mpi.Pget_fapl_mpio = dlsym(h5.library, "H5Pget_fapl_mpio");
    *(void **)&mpi.Pset_fapl_mpio = dlsym(h5.library, "H5Pset_fapl_mpio");
    *(void **)&mpi.Pset_dxpl_mpio = dlsym(h5.library, "H5Pset_dxpl_mpio");
    *(void **)&mpi.Pget_dxpl_mpio = dlsym(h5.library, "H5Pget_dxpl_mpio");
    *(void **)&mpi.Pget_coll_metadata_write = dlsym(h5.library, "H5Pget_coll_metadata_write");
    if (!mpi.Pget_fapl_mpio || !mpi.Pset_fapl_mpio || !mpi.Pset_dxpl_mpio || !mpi.Pget_dxpl_mpio ||
        !mpi.Pget_coll_metadata_write)
        return false;
    /* MPICH can also be built with the interface of MPI 5's standard, whose handles are others. */
    Dl_info where;
    if (!dladdr(*(void **)&mpi.Rget, &where) || !where.dli_fname || strstr(where.dli_fname, "mpi_abi"))
        return false;
    memset(version, 0, sizeof version);
    if (mpi.Get_library_version(version, &length))
        return false;
    return strstr(version, "MPICH") || strstr(version, "Intel(R) MPI") || strstr(version, "MVAPICH");
}

bool cv_mpi_usable(void)
{
    static enum { UNTRIED, GOOD, NONE } state;
    int there = 0, over = 0;

    if (state == UNTRIED)
        state = find() ? GOOD : NONE;
    return state == GOOD && !mpi.Initialized(&there) && there && !mpi.Finalized(&over) && !over;
}

bool cv_mpi_all(cv_comm comm, bool mine)
{
    uint64_t here = mine, everywhere = 0;

    return !mpi.Allreduce(&here, &everywhere, 1, CV_UINT64, CV_MIN, comm) && everywhere;
}
