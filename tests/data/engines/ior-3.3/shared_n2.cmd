mpiexec -n 2 ior -a POSIX -w -r -i 1 -t 256k -b 2m -s 2 -e -C -Q 1 -O numTasksOnNode0=1 -o /scratch/f
