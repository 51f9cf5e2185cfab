# mypy: ignore-errors
"""Trains a 3D CNN on TFRecord files with TensorFlow, data-parallel: a real application to compare with.

The network is a small CosmoFlow (Mathuriya et al., 2018: convolutions and pooling in three dimensions, then a
regression of four parameters). A record's bytes are its volume: the largest cube that they hold.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from common import files_in, run

SIDE, PARAMETERS = 32, 4


def volume(serialized):
    """Return the cube of a record, shrunk to SIDE, and what is to be learned of it."""
    parsed = tf.io.parse_single_example(
        serialized,
        {"image": tf.io.FixedLenFeature([], tf.string), "size": tf.io.FixedLenFeature([], tf.int64)},
    )
    cells = tf.cast(tf.io.decode_raw(parsed["image"], tf.uint8), tf.float32) / 255
    side = tf.cast(tf.floor(tf.pow(tf.cast(tf.size(cells), tf.float32), 1 / 3) + 1e-3), tf.int32)
    cube = tf.reshape(cells[: side * side * side], (side, side, side))
    chosen = tf.cast(tf.linspace(0.0, tf.cast(side - 1, tf.float32), SIDE), tf.int32)
    for axis in range(3):
        cube = tf.gather(cube, chosen, axis=axis)
    return cube[..., tf.newaxis], tf.reduce_mean(
        tf.reshape(cells[: PARAMETERS * 1000], (PARAMETERS, -1)), axis=1
    )


def cosmoflow() -> tf.keras.Model:
    layers = [tf.keras.layers.Input((SIDE, SIDE, SIDE, 1))]
    for filters in (8, 16, 32):
        layers += [tf.keras.layers.Conv3D(filters, 3, padding="same"), tf.keras.layers.LeakyReLU(),
                   tf.keras.layers.MaxPool3D(2)]  # fmt: skip
    layers += [tf.keras.layers.Flatten(), tf.keras.layers.Dense(64, activation="relu"),
               tf.keras.layers.Dense(PARAMETERS)]  # fmt: skip
    return tf.keras.Sequential(layers)


def train(options, ranks, spans) -> list[float]:
    tf.keras.utils.set_random_seed(options.seed)
    tf.config.threading.set_intra_op_parallelism_threads(1)  # the other cores belong to tf.data
    files = ranks.share(files_in(options.data, "tfrecord"))
    records = tf.data.TFRecordDataset(
        files, buffer_size=options.transfer_size or None, num_parallel_reads=max(1, options.read_threads)
    )
    if options.shuffle:
        records = records.shuffle(options.shuffle_size, seed=options.seed)
    batches = (
        records.map(volume, num_parallel_calls=options.computation_threads)
        .batch(options.batch_size, drop_remainder=True)
        .prefetch(options.prefetch_size)
    )
    model, losses = cosmoflow(), []
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def gradients_of(cubes, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(cubes, training=True) - targets))
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(cubes, targets) -> None:
        loss, gradients = gradients_of(cubes, targets)
        flat = np.concatenate([g.numpy().ravel() for g in gradients])
        ranks.mean(flat)
        parts = np.split(flat, np.cumsum([g.shape.num_elements() for g in gradients])[:-1])
        pairs = zip(parts, model.trainable_variables, strict=True)
        optimizer.apply_gradients((tf.reshape(part, v.shape), v) for part, v in pairs)
        losses.append(float(loss))

    def epoch() -> None:
        for cubes, targets in spans.fetched(batches):
            spans.computed("TF", step, cubes, targets)

    for _ in range(options.epochs):
        spans.epoch(epoch)
    return losses


if __name__ == "__main__":
    run(__doc__.splitlines()[0], train)
