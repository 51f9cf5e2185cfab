"""What is handed on: a study's results and everything that makes them again, in one archive (an RO-Crate)."""

from tiercel.artifact.pack import Packed, pack
from tiercel.artifact.reproduce import Answer, reproduce

__all__ = ["Answer", "Packed", "pack", "reproduce"]
