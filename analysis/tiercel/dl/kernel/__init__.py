"""dlkernel, the embedded deep-learning engine: ``python -m tiercel.dl.kernel``.

Uses nothing but the standard library until a format needs more (h5py, Pillow), so that it starts at once.
"""
