fio --name=job --directory=/scratch --output-format=json --output=/scratch/time_based_n1.json --rw=write --bs=256k --size=16m --ioengine=psync --time_based --runtime=1
