mpiexec -n 1 ior -a POSIX -w -r -F -t 64k -b 256k -o /scratch/nodir/f
