"""Layers: what stands in front of a storage. One file each."""

from tiercel.layers.base import Layer, Place, View, layers, merged

__all__ = ["Layer", "Place", "View", "layers", "merged"]
