"""``loader.py SAMPLES ANSWER EPOCHS``: np.load of every file in random order, with a little computation."""

import random
import sys
from pathlib import Path

import numpy as np

samples, answer, epochs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
seen, length = 0, 0
for epoch in range(epochs):
    files = sorted(samples.glob("*.npy"))
    random.Random(epoch).shuffle(files)
    for path in files:
        values = np.load(path)
        scaled = (values.astype(np.float32) - 32768) / 32768
        seen, length = seen + int(abs(float(scaled.mean())) < 1), len(values)
answer.write_text(f"{seen} {length}\n")
