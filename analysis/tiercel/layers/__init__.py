"""Layers: what stands in front of a storage. One file each."""

from tiercel.layers.base import Layer, Options, Place, View, layers, merged

__all__ = ["Layer", "Options", "Place", "View", "layers", "merged"]
