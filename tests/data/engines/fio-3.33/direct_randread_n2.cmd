fio --name=job --directory=/scratch --output-format=json --output=/scratch/direct_randread_n2.json --rw=randread --bs=4k --size=2m --ioengine=psync --direct=1 --numjobs=2 --group_reporting
