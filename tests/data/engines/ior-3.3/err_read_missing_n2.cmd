mpiexec -n 2 ior -a POSIX -r -F -t 64k -b 256k -o /scratch/f
