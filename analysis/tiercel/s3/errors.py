"""What a server of objects refuses, as operating-system errors: whoever reads files handles them already."""

from __future__ import annotations

import errno
import re

#: What a status means, in the words of files.
_NUMBERS = {403: errno.EACCES, 404: errno.ENOENT, 412: errno.ESTALE, 507: errno.ENOSPC}


class S3Error(OSError):
    """A request that came to nothing. `status` is HTTP's (0: no answer), `code` is S3's word for it."""

    def __init__(self, said: str, status: int = 0, code: str = "") -> None:
        super().__init__(_NUMBERS.get(status, errno.EIO), said)
        self.status, self.code = status, code


class Missing(S3Error, FileNotFoundError):
    """No such object, or no such bucket."""


def refusal(status: int, content: bytes, what: str) -> S3Error:
    """Return the error in a server's answer to `what` (``GET bucket/key``)."""
    code, message = (_said(name, content) for name in ("Code", "Message"))
    words = " ".join(part for part in (str(status), code) if part)
    said = f"{what}: the server says {words}{': ' + message if message else ''}"
    return (Missing if status == 404 else S3Error)(said, status, code)


def _said(name: str, content: bytes) -> str:
    found = re.search(rf"<{name}>([^<]*)</{name}>".encode(), content)
    return found[1].decode("utf-8", "replace") if found else ""
