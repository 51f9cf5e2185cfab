mpiexec -n 2 ior -a POSIX -w -r -F --posix.odirect -t 1m -b 4m -o /scratch/f
