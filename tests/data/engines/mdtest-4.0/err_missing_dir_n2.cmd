mpiexec -n 2 mdtest -n 2 -i 1 -u -d /proc/nodir/md
