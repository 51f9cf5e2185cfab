mpiexec -n 2 ior -a MPIIO -c -w -r -t 256k -b 2m -o /scratch/f
