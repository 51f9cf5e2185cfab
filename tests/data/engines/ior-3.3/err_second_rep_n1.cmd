mkdir /scratch/sub; (sleep 3; rm -rf /scratch/sub) & mpiexec -n 1 ior -a POSIX -w -F -i 2 -d 2 -t 64k -b 256k -o /scratch/sub/f
