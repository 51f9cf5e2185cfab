trap '' XFSZ; ulimit -f 8192; fio --name=job --directory=/scratch --output-format=json --output=/scratch/err_nospace.json --rw=write --bs=256k --size=16m --ioengine=psync --fallocate=none
