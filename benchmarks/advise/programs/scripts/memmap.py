"""Changes every 64th page of an array through a memory mapping, several times: file, rounds."""

import sys

import numpy as np

array = np.memmap(sys.argv[1], dtype=np.uint8, mode="r+")
for number in range(int(sys.argv[2])):
    array[number * 64 :: 64 * 1024] += 1
    array.flush()
