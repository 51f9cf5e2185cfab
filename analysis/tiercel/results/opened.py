"""An HDF5 file that opens each of its parts once while it is written."""

from __future__ import annotations

from typing import Any

import h5py


class OpensOnce(h5py.File):  # type: ignore[misc]
    """A file for `h5netcdf`, which looks for a dimension by its path each time that it asks it anything.

    Of sixty variables with ten dimensions these are 4,800 times, and took more than all the rest of writing.
    """

    def __init__(self, *arguments: Any, **keys: Any) -> None:
        super().__init__(*arguments, **keys)
        self._opened: dict[str, Any] = {}

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str):  # a reference
            return super().__getitem__(name)
        if name == "/":  # else what is deleted from it would not be known
            return self
        key = name.strip("/")
        if key not in self._opened:
            self._opened[key] = super().__getitem__(name)
        return self._opened[key]

    def __delitem__(self, name: str) -> None:
        self._opened.pop(name.strip("/"), None)
        super().__delitem__(name)

    def close(self) -> None:
        self._opened.clear()
        super().close()
