"""Names of servers, buckets and prefixes."""

from __future__ import annotations

import pytest

from tiercel.s3.endpoint import Credentials, Endpoint, Location, endpoint_of


@pytest.mark.parametrize(
    ("url", "told", "in_path"),
    [
        ("https://s3.eu-west-1.amazonaws.com", False, False),
        ("https://s3.eu-west-1.amazonaws.com", True, True),
        ("http://localhost:9000", False, True),
        ("http://10.0.0.1:9000", False, True),
        ("http://[::1]:9000", False, True),
    ],
)
def test_a_bucket_stands_in_the_path_where_a_host_has_no_domain(url: str, told: bool, in_path: bool) -> None:
    assert Endpoint(url, path_style=told).in_path is in_path


def test_the_environment_names_the_server_unless_it_is_fixed() -> None:
    told = {"AWS_ENDPOINT_URL": "http://b", "AWS_REGION": "eu-west-1"}
    assert endpoint_of("http://a", environment=told) == Endpoint("http://b", "eu-west-1")
    assert endpoint_of("http://a", environment={**told, "AWS_ENDPOINT_URL_S3": "http://c"}).url == "http://c"
    assert endpoint_of("http://a", fixed=True, environment=told).url == "http://a"
    assert endpoint_of("", environment={}).url == "https://s3.us-east-1.amazonaws.com"
    assert endpoint_of("", "eu-north-1", environment={}).url == "https://s3.eu-north-1.amazonaws.com"


@pytest.mark.parametrize(
    "url", ["ftp://host", "localhost:9000", "http://", "http://host/path", "http://me:secret@host"]
)
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="endpoint") as caught:
        Endpoint(url)
    assert "secret" not in str(caught.value)


def test_locations_go_down_as_folders_do() -> None:
    place = Location.parse("s3://bucket/a//b/", Endpoint("http://host"))
    assert str(place / "c/./d") == "s3://bucket/a/b/c/d"
    assert (place / "c").prefix == "a/b/c"
    assert str(Location.parse("s3://bucket", Endpoint("http://host")) / "x") == "s3://bucket/x"
    for wrong in ("..", "x/../../y"):
        with pytest.raises(ValueError, match=r"\.\."):
            place / wrong
    with pytest.raises(ValueError, match="bucket"):
        Location.parse("s3://Wrong_Bucket/x", Endpoint("http://host"))


def test_credentials_do_not_show() -> None:
    shown = repr(Credentials("name", "hidden", "token-of-a-session"))
    assert "hidden" not in shown
    assert "token-of-a-session" not in shown
