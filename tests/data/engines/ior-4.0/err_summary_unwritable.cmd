mpiexec -n 1 ior -w -t 64k -b 256k -o /scratch/f -O summaryFormat=JSON -O summaryFile=/scratch/nodir/s.json
