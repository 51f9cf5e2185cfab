mpiexec -n 2 mdtest -F -C -n 20 -i 2 -u -d /scratch/md
