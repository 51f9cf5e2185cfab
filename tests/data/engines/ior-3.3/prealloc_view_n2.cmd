mpiexec -n 2 ior -a MPIIO -w -r -p -V -t 256k -b 2m -o /scratch/f
