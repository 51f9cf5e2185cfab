mpiexec -n 2 mdtest -Z -n 20 -i 2 -u -d /scratch/md
