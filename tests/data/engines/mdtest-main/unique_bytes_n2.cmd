mpiexec -n 2 mdtest -n 20 -i 2 -u -w 4096 -e 4096 -d /scratch/md
