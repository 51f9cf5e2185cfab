"""Object storage of a site: the prefix in a bucket that tiercel may use."""

from __future__ import annotations

from tiercel.errors import UserError
from tiercel.s3.endpoint import Endpoint, Location, endpoint_of
from tiercel.site.model import Site, Storage
from tiercel.site.variables import expand


def location_of(storage: Storage) -> Location:
    """Return the scratch prefix of object storage; UserError for an unset variable or a wrong name."""
    try:
        url = expand(storage.endpoint, "endpoint")
        server = endpoint_of(url, storage.region, storage.path_style, storage.attempts, fixed=True)
        return Location(server, storage.bucket) / expand(storage.scratch, "scratch")
    except ValueError as error:
        raise UserError(str(error)) from None


def check_objects(site: Site, where: str) -> None:
    """Raise UserError for object storage of a bucket or server that cannot be; `where`: the site's file."""
    for name, storage in site.storages.items():
        if not storage.objects:
            continue
        try:
            if "$" not in storage.endpoint:  # else it is known where the run goes
                endpoint_of(storage.endpoint, environment={})
            Location(Endpoint("http://any"), storage.bucket)
        except ValueError as error:
            raise UserError(f"{where}: storages.{name}: {error}") from None
