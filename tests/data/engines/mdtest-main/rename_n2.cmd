mpiexec -n 2 mdtest -C -T -U -E -r -n 20 -i 2 -u -d /scratch/md
