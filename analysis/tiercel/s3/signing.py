"""Signature Version 4: who asks, and that nobody changed the question.

Source: Amazon's documentation of S3, "Authenticating requests: using the Authorization header". The digest of
what is sent is signed too, so a server finds a byte that was damaged on its way.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote

from tiercel.s3.endpoint import Credentials

EMPTY = hashlib.sha256(b"").hexdigest()
_SAFE = "-._~"


def path_text(path: str) -> str:
    """Return a path as it goes over the wire."""
    return quote(path, safe="/" + _SAFE)


def query_text(query: Mapping[str, str]) -> str:
    """Return a query as it goes over the wire, in the order of its names."""
    return "&".join(f"{quote(k, safe=_SAFE)}={quote(v, safe=_SAFE)}" for k, v in sorted(query.items()))


class Signer:
    """Signs requests of one region by one person."""

    def __init__(self, credentials: Credentials, region: str) -> None:
        self._credentials, self._region = credentials, region
        self._day, self._key = "", b""

    def headers(
        self, method: str, host: str, path: str, query: str, digest: str, moment: str
    ) -> dict[str, str]:
        """Return the headers to add. `path` and `query` as they go over the wire, `digest` the SHA-256 of
        the content, `moment` as 20260131T235959Z."""
        signed = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": moment}
        if self._credentials.token:
            signed["x-amz-security-token"] = self._credentials.token
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
        scope = f"{moment[:8]}/{self._region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.new(self._day_key(moment[:8]), text.encode(), "sha256").hexdigest()
        del signed["host"]
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._credentials.access}/{scope},SignedHeaders={names},"
            f"Signature={signature}"
        )
        return signed

    def _day_key(self, day: str) -> bytes:
        if day != self._day:
            key = b"AWS4" + self._credentials.secret.encode()
            for part in (day, self._region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day, self._key = day, key
        return self._key
