mpiexec -n 1 ior -a POSIX -w -r -F -i 2 -t 256k -b 4m -e -o /scratch/f
