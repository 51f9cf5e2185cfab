mpiexec -n 1 mdtest -D -U -n 2 -i 1 -u -d /scratch/md
