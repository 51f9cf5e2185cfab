fio --name=job --directory=/scratch --output-format=json --output=/scratch/write_n2_group.json --rw=write --bs=256k --size=16m --ioengine=psync --numjobs=2 --group_reporting
