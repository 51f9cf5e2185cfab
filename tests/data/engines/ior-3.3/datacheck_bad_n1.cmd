mpiexec -n 1 ior -w -k -G 1 -t 64k -b 256k -o /scratch/f >/dev/null; mpiexec -n 1 ior -r -R -G 2 -t 64k -b 256k -o /scratch/f
