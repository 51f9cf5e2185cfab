mpiexec -n 2 mdtest -n 20 -i 2 -w 4096 -e 4096 -d /scratch/md
