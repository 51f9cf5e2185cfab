mpiexec -n 2 ior -a POSIX -w -F -Y -t 16k -b 512m -D 1 -O stoneWallingWearOut=1 -o /scratch/f
