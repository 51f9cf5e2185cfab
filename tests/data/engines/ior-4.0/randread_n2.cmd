mpiexec -n 2 ior -a POSIX -w -r -F -z -t 4k -b 1m --random-offset-seed=42 -o /scratch/f
