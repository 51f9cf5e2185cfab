"""Makes netCDF files with one record variable: folder, count, values."""

import sys

import numpy as np
from scipy.io import netcdf_file

for number in range(int(sys.argv[2])):
    with netcdf_file(f"{sys.argv[1]}/in{number}.nc", "w", version=2) as file:
        file.createDimension("time", None)
        file.createDimension("x", int(sys.argv[3]))
        variable = file.createVariable("t", "f8", ("time", "x"))
        variable[:] = np.full((2, int(sys.argv[3])), float(number))
