fio --name=job --directory=/scratch --output-format=json --output=/scratch/write_n1.json --rw=write --bs=256k --size=16m --ioengine=psync
