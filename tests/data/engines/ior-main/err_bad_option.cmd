ior -w --no-such-option -o /scratch/f
