"""Where objects lie, and who asks for them."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
#: How often a request is sent before the run gives up (the default of DLIO and of Amazon's tools).
ATTEMPTS = 5


@dataclass(frozen=True)
class Endpoint:
    """A server of objects. `attempts`: how often a request is sent where the server is busy or gone."""

    url: str
    region: str = "us-east-1"
    path_style: bool = False
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"endpoint {self.url!r}: must be http://HOST[:PORT] or https://HOST[:PORT]")
        if parts.username or parts.password:
            raise ValueError("endpoint: credentials in its address: they come from the environment only")
        if parts.path not in ("", "/") or parts.query:
            raise ValueError(f"endpoint {self.url!r}: must have no path")
        if self.attempts < 1:
            raise ValueError(f"attempts: {self.attempts}: must be 1 at least")

    @property
    def tls(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or (443 if self.tls else 80)

    @property
    def in_path(self) -> bool:
        """Whether a bucket's name goes into the path: as told, and where the host's name has no domain."""
        if self.path_style or "." not in self.host:
            return True
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Credentials:
    """From the environment, by Amazon's names; never printed, never kept in results."""

    access: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Credentials:
        """Return the environment's credentials; LookupError that names what is not set."""
        lacking = [n for n in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if not environment.get(n)]
        if lacking:
            raise LookupError(f"credentials for object storage: {' and '.join(lacking)} not set")
        return cls(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN", ""),
        )


@dataclass(frozen=True)
class Location:
    """A prefix in a bucket; ``/`` goes further down, as in a folder. As text ``s3://bucket/prefix``."""

    endpoint: Endpoint
    bucket: str
    prefix: str = ""

    def __post_init__(self) -> None:
        if not _BUCKET.fullmatch(self.bucket):
            raise ValueError(
                f"bucket {self.bucket!r}: must be 3 to 63 lower-case letters, digits, dots, dashes"
            )

    @classmethod
    def parse(cls, url: str, endpoint: Endpoint) -> Location:
        """Return the location that ``s3://bucket/prefix`` names; ValueError for another text."""
        bucket, prefix = split(url)
        return cls(endpoint, bucket, prefix)

    def __truediv__(self, name: object) -> Location:
        parts = [p for p in (*self.prefix.split("/"), *str(name).split("/")) if p not in ("", ".")]
        if ".." in parts:
            raise ValueError(f"{name}: no .. in the names of objects")
        return Location(self.endpoint, self.bucket, "/".join(parts))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def is_url(text: str) -> bool:
    """Return whether `text` names objects rather than files."""
    return text.startswith("s3://")


def split(url: str) -> tuple[str, str]:
    """Return bucket and key of ``s3://bucket/key``; ValueError for another text."""
    if not is_url(url):
        raise ValueError(f"{url!r}: must be s3://BUCKET[/PREFIX]")
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return bucket, key.strip("/")


def endpoint_of(
    url: str = "", region: str = "", path_style: bool = False, attempts: int = ATTEMPTS,
    fixed: bool = False, environment: Mapping[str, str] = os.environ,
) -> Endpoint:  # fmt: skip
    """Return the server: the environment's (``AWS_ENDPOINT_URL_S3``, ``AWS_ENDPOINT_URL``), else `url`,
    else Amazon's of the region. With `fixed` `url` comes first. ValueError for one that cannot be.
    """
    where = region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    told = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or url
    if fixed and url:
        told = url
    return Endpoint(told or f"https://s3.{where}.amazonaws.com", where, path_style, attempts)
