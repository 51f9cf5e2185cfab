mpiexec -n 2 ior -a POSIX -w -r -F -z -t 4k -b 1m  -o /scratch/f
