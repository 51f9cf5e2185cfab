mpiexec -n 2 ior -a POSIX -v -w -r -F -t 256k -b 1m -o /scratch/f
