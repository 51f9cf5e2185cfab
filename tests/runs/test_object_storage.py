"""Object storage as a storage of the site: checked, measured, cleaned up after; what it cannot do is said."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tiercel.documents import parse
from tiercel.errors import UserError
from tiercel.runs.objects import ObjectScratch, left_prefixes, remove_run_prefix
from tiercel.site.model import Site, Stack, Storage
from tiercel.site.objects import check_objects, location_of

from ..conftest import Project
from ..objects import ENVIRONMENT, KEY, SECRET, Gateway, needs_gateway

pytestmark = needs_gateway

STUDY = """
study: objects
title: Files and objects side by side
engines: [dlkernel]
repetitions: {minimum: 2, maximum: 2, target: 0.9}
timeout: 60s
experiments:
  training:
    processes_per_node: [1]
    workloads:
      images:
        operation: deep-learning
        workload: resnet50-vast
        scale: 0.05
        overrides: {workflow.checkpoint: true, train.epochs: 2}
"""


def storage(gateway: Gateway, **keys: object) -> Storage:
    content = {"type": "s3", "bucket": "data", "endpoint": gateway.url, "scratch": "of/tests", **keys}
    return parse(Storage, content, "test")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def with_objects(project: Project, gateway: Gateway, **keys: str) -> None:
    """Add the gateway to a project's site, as storage `objects`."""
    file = project.root / "site-configs" / "local" / "site.yaml"
    lines = {"type": "s3", "bucket": "data", "endpoint": gateway.url, "scratch": "studies", **keys}
    own = "".join(f"    {name}: {value}\n" for name, value in lines.items())
    file.write_text(f"{file.read_text().rstrip()}\n  objects:\n{own}")


def test_a_site_file_says_what_is_needed(gateway: Gateway) -> None:
    found = storage(gateway)
    assert (found.mount, found.medium, found.shared, found.source) == (
        "s3://data", "network", True, gateway.url,
    )  # fmt: skip
    assert str(location_of(found)) == "s3://data/of/tests"
    assert str(location_of(storage(gateway, scratch="x/$AWS_ACCESS_KEY_ID"))) == f"s3://data/x/{KEY}"
    with pytest.raises(UserError, match="is object storage: only deep-learning workloads"):
        found.scratch_path()
    for keys, said in (
        ({"bucket": ""}, "needs bucket"),
        ({"mount": "/mnt"}, "leave it out"),
        ({"type": "ext4", "mount": "/", "scratch": "/tmp"}, "bucket, endpoint: only of type: s3"),
    ):
        with pytest.raises(UserError, match=said):
            storage(gateway, **keys)
    for keys, said in (({"bucket": "No_Bucket"}, "lower-case"), ({"endpoint": "nowhere"}, "must be http")):
        site = Site(site="here", storages={"objects": storage(gateway, **keys)})
        with pytest.raises(UserError, match=f"site.yaml: storages.objects: .*{said}"):
            check_objects(site, "site.yaml")


def test_site_check_proves_it(project: Project, gateway: Gateway) -> None:
    with_objects(project, gateway)
    done = project.tiercel("site", "check", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    probes = [r for r in gateway.requests(key="studies/tiercel-probe-") if r.status in (200, 204)]
    assert [r.action for r in probes] == ["PutObject", "GetObject", "DeleteObject"]
    assert gateway.objects("studies") == {}
    for env, said in (
        ({"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "storage objects: " + gateway.url),
        ({"AWS_SECRET_ACCESS_KEY": ""}, "AWS_SECRET_ACCESS_KEY not set"),
    ):
        refused = project.tiercel("site", "check", "local", env=env)
        assert refused.returncode == 1
        assert said in refused.stdout + refused.stderr
        assert "not-the-secret" not in refused.stdout + refused.stderr


def test_a_bucket_that_is_not_there_is_named(project: Project, gateway: Gateway) -> None:
    with_objects(project, gateway, bucket="nobody-made-it")
    refused = project.tiercel("site", "check", "local")
    assert refused.returncode == 1
    assert "NoSuchBucket" in refused.stdout + refused.stderr


def test_a_study_measures_files_and_objects_side_by_side(
    project: Project, gateway: Gateway, checkout: Path
) -> None:
    with_objects(project, gateway)
    project.study("objects", STUDY)
    (project.root / "workflows" / "dl-workloads").symlink_to(checkout / "workflows" / "dl-workloads")
    gateway.client().put("studies/somebody", [b"of somebody else"])
    done = project.tiercel("evaluate", "--study", "objects")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    most = rows.groupby(["operation", "storage"])["bytes_moved"].agg(["count", "max"])
    for operation in ("generate", "train", "train-later", "checkpoint-write"):
        assert most["count"][operation, "main"] == most["count"][operation, "objects"] >= 2
    for operation in ("generate", "checkpoint-write"):
        assert most["max"][operation, "main"] == most["max"][operation, "objects"] > 0
    # An image is one object, read once; from a file Pillow reads some of its blocks twice.
    assert most["max"]["train", "objects"] == most["max"]["generate", "objects"]
    of_objects = rows[(rows["storage"] == "objects") & (rows["operation"] == "train")]
    assert (of_objects["latency_p50"] > 0).all()
    assert of_objects["resident_fraction"].isna().all()
    # Cleaned up after; what is not ours stays.
    assert gateway.objects("studies") == {"studies/somebody": 16}
    kept = [p for p in (project.root / "results").rglob("*") if p.is_file()]
    assert kept
    for path in kept:
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        assert KEY.encode() not in content, path
    page = next(project.results.rglob("*.html")).read_text()
    assert "s3://data" in page


def test_what_runs_on_files_only_is_left_out_in_one_line(project: Project, gateway: Gateway) -> None:
    with_objects(project, gateway)
    done = project.tiercel("plan", "--study", "tiny", "--json")
    assert done.returncode == 0, done.stderr
    planned = json.loads(done.stdout)
    assert planned
    assert "objects" not in json.dumps(planned)
    said = project.tiercel("plan", "--study", "tiny")
    assert "scaling on objects: only deep-learning workloads on engine dlkernel run there" in " ".join(
        said.stdout.split()
    )


def test_a_run_has_a_prefix_of_its_own_and_removes_only_that(gateway: Gateway) -> None:
    client, stack = gateway.client(), Stack("objects", storage(gateway))
    client.put("of/tests/tiercel-run-other/data/x", [b"another run's"])
    client.put("of/tests/tiercel-run-one-more", [b"begins as ours does"])
    with ObjectScratch(stack, "one") as scratch:
        client.put((scratch.data / "dataset/x").prefix, [b"ours"])
        upload = client.upload((scratch.data / "checkpoint").prefix, 40_000_000)
        upload.write(memoryview(bytes(20_000_000)))  # a run that is killed never ends it
    assert gateway.objects("of/tests") == {
        "of/tests/tiercel-run-one-more": 19, "of/tests/tiercel-run-other/data/x": 13,
    }  # fmt: skip
    assert gateway.requests("AbortMultipartUpload", "of/tests/tiercel-run-one/data/checkpoint")
    for key in ("of/tests/tiercel-run-one-more", "of/tests/tiercel-run-other/data/x"):
        client.delete(key)


def test_what_a_killed_run_left_is_found_and_removed_if_it_is_ours(gateway: Gateway) -> None:
    client, stack = gateway.client(), Stack("objects", storage(gateway, scratch="killed"))
    scratch = ObjectScratch(stack, "dead").__enter__()
    client.put((scratch.data / "x").prefix, [b"ours"])
    client.put("killed/tiercel-run-foreign/data/x", [b"no marker"])
    found = {str(place): place for place in left_prefixes(stack)}
    assert list(found) == ["s3://data/killed/tiercel-run-dead", "s3://data/killed/tiercel-run-foreign"]
    assert remove_run_prefix(found["s3://data/killed/tiercel-run-dead"]) == 2
    with pytest.raises(UserError, match=r"has no \.tiercel-run marker"):
        remove_run_prefix(found["s3://data/killed/tiercel-run-foreign"])
    with pytest.raises(UserError, match="is not the prefix of a run"):
        remove_run_prefix(location_of(stack.storage))
    assert gateway.objects("killed") == {"killed/tiercel-run-foreign/data/x": 9}


def test_a_run_of_the_same_name_begins_anew(gateway: Gateway, tmp_path: Path) -> None:
    stack = Stack("objects", storage(gateway, scratch="anew"))
    gateway.client().put((ObjectScratch(stack, "r").__enter__().data / "left").prefix, [b"x"])
    with ObjectScratch(stack, "r"):
        assert gateway.objects("anew") == {"anew/tiercel-run-r/.tiercel-run": 0}
    assert gateway.objects("anew") == {}
