mpiexec -n 2 mdtest -n 0 -I 3 -z 2 -b 2 -i 1 -u -d /scratch/md
