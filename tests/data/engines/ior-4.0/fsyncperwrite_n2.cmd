mpiexec -n 2 ior -a POSIX -w -F -Y -t 64k -b 1m -o /scratch/f
