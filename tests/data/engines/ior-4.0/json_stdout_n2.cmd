mpiexec -n 2 ior -a POSIX -w -r -F -t 256k -b 1m -O summaryFormat=JSON -o /scratch/f
