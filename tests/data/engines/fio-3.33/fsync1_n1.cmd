fio --name=job --directory=/scratch --output-format=json --output=/scratch/fsync1_n1.json --rw=write --bs=4k --size=512k --ioengine=psync --fsync=1
