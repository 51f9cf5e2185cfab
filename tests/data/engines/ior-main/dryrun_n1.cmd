mpiexec -n 1 ior --dryRun -w -r -F -t 64k -b 1m -o /scratch/f
