mpiexec -n 2 mdtest -P -n 20 -i 2 -u -d /scratch/md
