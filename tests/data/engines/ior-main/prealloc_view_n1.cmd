mpiexec -n 1 ior -a MPIIO -w -r --mpiio.preallocate --mpiio.useFileView -t 256k -b 2m -o /scratch/f
