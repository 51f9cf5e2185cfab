mpiexec -n 1 ior -w -k -t 64k -b 256k -o /scratch/f >/dev/null; mpiexec -n 1 ior -r -t 64k -b 512k -o /scratch/f
