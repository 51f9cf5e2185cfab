mpiexec -n 2 mdtest -n 20 -i 2 -u -d /scratch/md
