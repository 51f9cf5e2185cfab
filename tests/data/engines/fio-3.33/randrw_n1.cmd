fio --name=job --directory=/scratch --output-format=json --output=/scratch/randrw_n1.json --rw=randrw --bs=4k --size=4m --ioengine=psync
