mpiexec -n 2 mdtest -D -n 20 -i 2 -u -d /scratch/md
