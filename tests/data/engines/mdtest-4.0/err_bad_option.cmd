mdtest --no-such-option -d /scratch/md
