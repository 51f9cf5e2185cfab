fio --name=job --directory=/scratch --output-format=json --output=/scratch/create_only_n1.json --rw=read --bs=256k --size=16m --ioengine=psync --create_only=1
