mpiexec -n 2 mdtest -n 20 -i 2 -d /scratch/md
