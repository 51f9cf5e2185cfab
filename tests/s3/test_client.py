"""Requests to a real server, and what becomes of answers that are cut, late or refusals."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from pathlib import Path

import pytest

from tiercel.programs import program
from tiercel.s3.client import PART, Client, Upload
from tiercel.s3.endpoint import Credentials, Endpoint
from tiercel.s3.errors import Missing, S3Error

from ..objects import CREDENTIALS, Gateway, needs_gateway, serving
from .wires import answering, cut

pytestmark = needs_gateway


def written(upload: Upload, content: bytes, piece: int) -> None:
    for start in range(0, len(content), piece):
        upload.write(memoryview(content)[start : start + piece])
    upload.end()


@pytest.mark.parametrize("key", ["plain", "a/b c+d&e=f?g#h%20.txt", "ü/ñ/漢字", "dots.-_~/x"])
def test_what_is_written_is_read_and_lies_there(gateway: Gateway, key: str) -> None:
    client = gateway.client()
    client.put(f"names/{key}", [b"hello ", memoryview(b"world")])
    assert client.read(f"names/{key}") == b"hello world"
    assert (gateway.folder / "names" / key).read_bytes() == b"hello world"
    assert client.head(f"names/{key}").size == 11
    # MD5 of "hello world", which S3 gives as the tag of an object that is written at once.
    assert client.head(f"names/{key}").etag == "5eb63bbbe01eeed093cb22bb8f5acdc3"
    assert f"names/{key}" in [found.key for found in client.list("names/")]
    client.delete(f"names/{key}")
    assert not (gateway.folder / "names" / key).exists()


def test_a_large_object_goes_in_parts_and_comes_back(gateway: Gateway) -> None:
    content = os.urandom(2 * PART + 7)
    written(gateway.client().upload("large/one", len(content)), content, 3_000_001)
    assert (gateway.folder / "large/one").read_bytes() == content
    assert len(gateway.requests("UploadPart", "large/one")) == 3
    body = gateway.client().get("large/one")
    found = bytearray(body.size or 0)
    assert body.readinto(memoryview(found)) == len(content)
    assert found == content


def test_a_range_is_what_was_asked_for(gateway: Gateway) -> None:
    client = gateway.client()
    client.put("ranges/one", [bytes(range(256))])
    body = client.get("ranges/one", 100, 10)
    assert (body.status, body.all()) == (206, bytes(range(100, 110)))


def test_an_object_that_changes_between_its_ranges_is_refused(gateway: Gateway) -> None:
    client = gateway.client()
    tag = client.put("changes/one", [b"before"])
    assert client.get("changes/one", 0, 2, tag).all() == b"be"
    client.put("changes/one", [b"after!"])
    with pytest.raises(S3Error, match="412") as caught:
        client.get("changes/one", 2, 2, tag)
    assert caught.value.errno == errno.ESTALE


def test_an_upload_that_lacks_bytes_leaves_nothing(gateway: Gateway) -> None:
    client = gateway.client()
    for length in (10, PART + 10):
        upload = client.upload("short/one", length)
        upload.write(memoryview(bytes(length - 1)))
        with pytest.raises(S3Error, match=f"{length - 1} of {length} bytes"):
            upload.end()
    assert gateway.objects("short") == {}
    # Neither are parts kept that were sent: the upload was ended, and nothing is left to forget.
    client.abandon("short/")
    assert len(gateway.requests("AbortMultipartUpload", "short/one")) == 1


def test_more_than_a_thousand_objects_are_listed(gateway: Gateway) -> None:
    client = gateway.client()
    for number in range(1001):
        client.put(f"many/{number:04d}", [b""])
    asked = len(gateway.requests("ListObjectsV2"))
    assert [found.key for found in client.list("many/")] == [f"many/{number:04d}" for number in range(1001)]
    assert len(gateway.requests("ListObjectsV2")) - asked == 2


def test_refusals_are_those_of_files(gateway: Gateway) -> None:
    with pytest.raises(Missing, match="GET data/nothing: the server says 404 NoSuchKey") as missing:
        gateway.client().read("nothing")
    assert isinstance(missing.value, FileNotFoundError)
    wrong = Client(gateway.endpoint, "data", Credentials(CREDENTIALS.access, "another secret"))
    with pytest.raises(S3Error, match="403 SignatureDoesNotMatch") as refused:
        wrong.read("nothing")
    assert refused.value.errno == errno.EACCES
    with pytest.raises(Missing, match="NoSuchBucket"):
        Client(gateway.endpoint, "no-such-bucket", CREDENTIALS).put("x", [b"x"])


def test_credentials_that_are_not_set_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    with pytest.raises(S3Error, match="AWS_ACCESS_KEY_ID not set"):
        Client(Endpoint("http://127.0.0.1"), "data")


def test_an_answer_that_breaks_off_is_an_error_and_no_short_object(gateway: Gateway) -> None:
    gateway.client().put("torn/one", [bytes(1_000_000)])
    with cut(gateway.port, after=300_000) as port:
        client = Client(Endpoint(f"http://127.0.0.1:{port}", attempts=1), "data", CREDENTIALS)
        with pytest.raises(S3Error, match=r"the connection ended \d+ bytes before the object"):
            client.read("torn/one")


def test_a_busy_server_is_asked_again_when_it_says(gateway: Gateway) -> None:
    busy = b"HTTP/1.1 503 Slow Down\r\nRetry-After: 1\r\nContent-Length: 31\r\nConnection: close\r\n\r\n" \
        b"<Error><Code>SlowDown</Code>..."  # fmt: skip
    fine = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    retried: list[int] = []
    with answering([busy, busy, fine]) as (port, asked):
        client = Client(Endpoint(f"http://127.0.0.1:{port}"), "data", CREDENTIALS, lambda: retried.append(1))
        began = time.monotonic()
        assert client.read("x") == b"ok"
        assert time.monotonic() - began >= 2  # as told: one second each time
    assert len(retried) == 2
    assert len(asked) == 3


def test_a_busy_server_is_given_up_after_the_attempts(gateway: Gateway) -> None:
    busy = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 28\r\nConnection: close\r\n\r\n" \
        b"<Error><Code>SlowDown</Code>"  # fmt: skip
    with answering([busy]) as (port, asked):
        client = Client(Endpoint(f"http://127.0.0.1:{port}", attempts=3), "data", CREDENTIALS)
        with pytest.raises(S3Error, match=r"503 SlowDown \(3 times\)"):
            client.put("x", [b"content"])
    assert len(asked) == 3


def test_a_refusal_is_not_asked_again(gateway: Gateway) -> None:
    answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with answering([answer]) as (port, asked), pytest.raises(S3Error, match="403"):
        Client(Endpoint(f"http://127.0.0.1:{port}"), "data", CREDENTIALS).read("x")
    assert len(asked) == 1


def test_a_connection_that_the_server_closed_meanwhile_is_no_failure(gateway: Gateway) -> None:
    # The server says that it keeps the connection, and closes it after its answer.
    fine = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    retried: list[int] = []
    with answering([fine]) as (port, asked):
        client = Client(Endpoint(f"http://127.0.0.1:{port}", attempts=1), "data", CREDENTIALS,
                        lambda: retried.append(1))  # fmt: skip
        assert client.read("x") == b"ok"
        assert client.read("x") == b"ok"
    assert (len(asked), retried) == (2, [])


def test_signatures_are_those_of_the_documentation() -> None:
    """Amazon's own example: GET of the first ten bytes of test.txt (they sign the range too; we need not)."""
    from tiercel.s3.signing import EMPTY, Signer  # noqa: PLC0415

    signer = Signer(
        Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "us-east-1"
    )
    headers = signer.headers(
        "GET", "examplebucket.s3.amazonaws.com", "/", "max-keys=2&prefix=J", EMPTY, "20130524T000000Z"
    )
    assert headers["authorization"].endswith(
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )
    signer = Signer(
        Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "us-east-1"
    )
    headers = signer.headers(
        "GET", "examplebucket.s3.amazonaws.com", "/", "lifecycle=", EMPTY, "20130524T000000Z"
    )
    assert headers["authorization"].endswith(
        "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )


def test_a_server_with_tls_is_believed_only_by_its_certificate(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openssl = program("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [str(openssl), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    with serving(tmp_path, "--cert", str(certificate), "--key", str(key)) as safe:
        endpoint = Endpoint(f"https://localhost:{safe.port}", attempts=1)
        with pytest.raises(S3Error, match=r"no secure connection to https://localhost.*self-signed"):
            Client(endpoint, "data", CREDENTIALS).read("x")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        client, content = Client(endpoint, "data", CREDENTIALS), os.urandom(3_000_000)
        client.put("x", [content])
        assert client.read("x") == content
