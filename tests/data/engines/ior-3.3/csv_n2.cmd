mpiexec -n 2 ior -a POSIX -w -r -F -i 2 -t 256k -b 4m -O summaryFormat=CSV -O summaryFile=/scratch/csv_n2.csv -o /scratch/f
