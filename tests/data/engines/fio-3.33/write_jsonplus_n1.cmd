fio --name=job --directory=/scratch --output-format=json+ --output=/scratch/write_jsonplus_n1.json --rw=write --bs=256k --size=4m --ioengine=psync
