"""The sites that come with tiercel: they load, links and profiles fit, topologies give ceilings."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tiercel.ceilings import ceiling_of
from tiercel.ceilings.ceiling import Operation
from tiercel.documents import parse
from tiercel.errors import UserError
from tiercel.runs.site_check import problems
from tiercel.schedulers import scheduler_of
from tiercel.site import load_site
from tiercel.site.facts import facts_of
from tiercel.site.load import described_sites, suppose
from tiercel.site.model import Site, Storage
from tiercel.site.profile import check_profile
from tiercel.units import parse_rate

from ..conftest import CHECKOUT, IN_OPERATION, SHIPPED

SITES = [name for name in SHIPPED if name != "local"]


@pytest.mark.parametrize("name", SITES)
def test_site_has_link_and_profile(name: str) -> None:
    site = load_site(name, CHECKOUT)
    assert (CHECKOUT / name).readlink() == Path("site-configs") / name
    profile = yaml.safe_load((CHECKOUT / name / "config.yaml").read_text())
    check_profile(name, CHECKOUT)
    assert "measuring=1" in profile["resources"]  # never two measurements at a time
    assert "config" not in profile  # --config study=... would replace it whole
    assert site.scheduler is not None


#: An address, and the day on which it was read.
READ = re.compile(r"\S+\.\S+/\S+.*\bread 2\d{3}-\d{2}-\d{2}\b")


@pytest.mark.parametrize("name", IN_OPERATION)
def test_facts_of_a_machine_in_operation_have_an_address_and_a_date(name: str) -> None:
    site = load_site(name, CHECKOUT)
    assert site.retired is None
    facts = facts_of(site, None)
    assert [fact.name for fact in facts if fact.standing == "source" and not READ.search(fact.source)] == []
    sourced = {fact.name for fact in facts if fact.standing == "source"}
    assert "memory_per_node" in sourced
    for storage, about in site.storages.items():
        # Memory is what every node has; of the others the centre names folder or mount point.
        assert about.medium == "memory" or sourced & {
            f"storages.{storage}.{key}" for key in ("mount", "scratch")
        }
        assert {f"storages.{storage}.topology.{stage.name}" for stage in about.topology} <= sourced


def test_a_machine_is_called_retired_where_a_source_says_so() -> None:
    retired = {name: site for name, site in described_sites(CHECKOUT).items()
               if isinstance(site, Site) and site.retired is not None}  # fmt: skip
    assert {name: site.retired for name, site in retired.items()} == {"sierra": 2025, "summit": 2024}
    assert all(READ.search(site.sources["retired"]) for site in retired.values())


def test_a_list_of_sites_has_those_that_cannot_be_read(tmp_path: Path) -> None:
    root = _project(tmp_path, {"retired": 2020})
    broken = root / "site-configs" / "broken"
    broken.mkdir()
    (broken / "site.yaml").write_text("site: [")
    found = described_sites(root)
    blind = found["blind"]
    assert isinstance(blind, Site) and blind.retired == 2020
    assert isinstance(found["broken"], str) and "site.yaml" in found["broken"]


def test_a_plan_knows_storage_that_no_engine_can_use() -> None:
    aurora = load_site("aurora", CHECKOUT)
    assert "daos" in aurora.unmeasured and "daos" not in aurora.storages
    # In place of Flare: its 650 GB/s become DAOS' 30 TB/s; 400 nodes send 400 x 8 x 25 GB/s = 80 TB/s.
    like = suppose(aurora, ["flare=aurora.daos"], CHECKOUT)
    before, after = (ceiling_of(site.storages["flare"], "write", 400) for site in (aurora, like))
    assert before is not None and after is not None
    assert (before.rate, after.rate) == (650e9, 30e12)


def test_storage_of_a_job_needs_a_scheduler_that_makes_it(tmp_path: Path) -> None:
    rabbit = {"type": "xfs", "mount": "$DW_JOB_a", "scratch": "$DW_JOB_a/x", "allocate": "#DW jobdw type=xfs"}
    for scheduler in ("slurm", None):
        changes = {
            "storages": {"rabbit": rabbit},
            **({"scheduler": {"name": scheduler}} if scheduler else {}),
        }
        site = load_site("blind", _project(tmp_path / str(scheduler), changes))
        with pytest.raises(UserError, match=r"storages.rabbit.allocate: only scheduler flux makes storage"):
            scheduler_of(site)


def test_a_profile_that_hands_on_no_storage_of_a_job_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "site-configs" / "tuolumne"
    shutil.copytree(CHECKOUT / "site-configs" / "tuolumne", folder)
    (tmp_path / "tuolumne").symlink_to("site-configs/tuolumne")
    check_profile("tuolumne", tmp_path)
    profile = folder / "config.yaml"
    profile.write_text(profile.read_text().replace(" {resources.allocate}", ""))
    with pytest.raises(UserError, match=r"does not hand on \{resources.allocate\}"):
        check_profile("tuolumne", tmp_path)


#: Table I of paper 002: type of the file system, name and bytes (a node's) of the storage of a node.
STORAGE_HIERARCHY = {
    "theta": ("lustre", "ssd", 128e9),
    "thetagpu": ("lustre", "nvme", 15e12),
    "sierra": ("gpfs", "nvme", 1.6e12),
    "summit": ("gpfs", "nvme", 1.6e12),
    "fugaku": ("lustre", "nvme", 1.6e12 / 16),  # one for 16 nodes
}


@pytest.mark.parametrize("name", STORAGE_HIERARCHY)
def test_the_storage_hierarchy_is_the_papers(name: str) -> None:
    kind, local, size = STORAGE_HIERARCHY[name]
    storages = load_site(name, CHECKOUT).storages
    assert {s.type for s in storages.values() if s.medium == "network"} == {kind}
    assert storages[local].capacity == pytest.approx(size, rel=0.03)  # what the maker calls a TB


#: What the papers measured, the storage delivering it: none may lie above the ceiling of its site.
#: (site, storage, operation, nodes, bytes per second of all nodes, where it stands)
MEASURED = [
    ("lassen", "gpfs", "read", 1, 14.5e9, "paper 004, section VII: sequential read per node"),
    ("lassen", "gpfs", "read", 1, 1.4e9, "paper 004, section VII: random read per node"),
    ("lassen", "vast", "write", 1, 1e9, "paper 004, section VII: per node with TCP"),
    ("wombat", "vast", "read", 1, 26.6e9, "paper 004, section V.B: single node, 32 processes"),
    ("wombat", "vast", "read", 4, 22.5e9, "paper 004, section V.C: random read, maximum at four nodes"),
    ("wombat", "vast", "write", 1, 5.8e9, "paper 004, section V.A: single node with fsync"),
    ("wombat", "vast", "read", 1, 9e9, "paper 004, section VII: sequential read per node with RDMA"),
    ("wombat", "vast", "write", 1, 8e9, "paper 004, section VII: write per node with RDMA"),
    ("wombat", "nvme", "write", 1, 5.8e9 / 5, "paper 004, section V.A: a fifth of VAST's"),
    ("theta", "ssd", "write", 1, 500e6, "paper 002, section V.B: a node's cached rate"),
    ("theta", "lustre", "write", 128, 100e9, "paper 002, section V.B: where it saturates"),
    ("theta", "ssd", "write", 8, 4349.03 * 2**20, "paper 002, table II: eight nodes, with enough compute"),
    ("theta", "lustre", "read", 4, 10937.79 * 2**20, "paper 002, table III c: baseline in order"),
    ("theta", "fs0", "read", 128, 36e9, "paper 000, section III.A: CosmoFlow"),
    ("thetagpu", "lustre", "read", 1, 2044.39 * 2**20, "paper 002, table III a: baseline in order"),
    ("summit", "gpfs", "write", 1, 12e9, "paper 002, section V.B: GPFS per node"),
    ("summit", "nvme", "write", 1, 2e9, "paper 002, section V.B, figure 4: cached rate per node"),
]  # fmt: skip


@pytest.mark.parametrize("figure", MEASURED, ids=lambda f: f"{f[0]}-{f[1]}-{f[2]}-{f[4] / 1e9:.3g}")
def test_nothing_that_a_paper_measured_lies_above_the_ceiling(
    figure: tuple[str, str, Operation, int, float, str],
) -> None:
    site, storage, operation, nodes, measured, where = figure
    ceiling = ceiling_of(load_site(site, CHECKOUT).storages[storage], operation, nodes)
    if ceiling is not None:  # where no stage has a number there is none
        assert measured <= ceiling.rate, f"{where}: above what the stage {ceiling.stage.label} carries"


def test_lassens_gateway_bounds_vast_from_three_nodes_on() -> None:
    vast = load_site("lassen", CHECKOUT).storages["vast"]
    # One node: its EDR link, 100 Gb/s; four: the gateway's 2 x 100 Gb/s (paper 004, section IV.B).
    one, four = ceiling_of(vast, "read", 1), ceiling_of(vast, "read", 4)
    assert one is not None and four is not None
    assert (one.stage.stage, one.rate) == ("client", 12.5e9)
    assert (four.stage.stage, four.rate) == ("gateway", 25e9)
    assert {"connection (the single TCP link)", "media (five DBoxes)"} <= set(four.unknown)


def test_wombats_connections_and_servers_are_stages_whose_bandwidth_nobody_gives() -> None:
    vast = load_site("wombat", CHECKOUT).storages["vast"]
    # Paper 004, section IV.B: nconnect=16, eight CNodes, eight DNodes with 2 x 50 Gb/s for each CNode.
    assert {stage.stage: stage.count(2) for stage in vast.topology} == {
        "client": 2, "connection": 32, "server": 8, "fabric": 16, "media": 8,
    }  # fmt: skip
    found = ceiling_of(vast, "read", 2)
    assert found is not None
    assert (found.rate, found.stage.stage) == (100e9, "fabric")
    assert len(found.unknown) == 5  # four of its stages, and the gateway that it may have


def test_quartz_gateways_carry_eight_gigabytes() -> None:
    # 32 gateways x 2 x 1 Gb/s = 64 Gb/s = 8 GB/s.
    found = ceiling_of(load_site("quartz", CHECKOUT).storages["vast"], "write", 128)
    assert found is not None
    assert found.rate == 8e9


def test_a_ceiling_for_writes_says_nothing_of_reads() -> None:
    ssd = load_site("theta", CHECKOUT).storages["ssd"]
    assert ceiling_of(ssd, "read", 2) is None
    writes = ceiling_of(ssd, "write", 2)
    assert writes is not None
    assert writes.rate == 2 * 700e6


@pytest.mark.parametrize(
    ("text", "expected"),
    [("100Gb/s", 12.5e9), ("12.5GB/s", 12.5e9), ("2GiB/s", 2 * 1024**3), ("1Mb/s", 125e3)],
)
def test_rates(text: str, expected: float) -> None:
    assert parse_rate(text) == expected


def test_what_is_amiss_is_told_in_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIERCEL_ACCOUNT", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    found = problems(load_site("summit", CHECKOUT), CHECKOUT)
    assert any("no bsub, bjobs, bkill on PATH" in p for p in found)
    assert any("TIERCEL_ACCOUNT is not set" in p for p in found)


def test_a_job_that_never_starts_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [
        f"{n}|PENDING|tiercel-ruby_{n}|{why}|{CHECKOUT}"
        for n, why in [(7, "PartitionConfig"), (8, "Priority")]
    ]
    for name in ("sbatch", "squeue", "scancel", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\n" + "".join(f"echo '{job}'\n" for job in jobs))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert problems(load_site("ruby", CHECKOUT), CHECKOUT, storages=False) == [
        "job 7 cannot start: PartitionConfig"
    ]


def test_network_storage_is_shared_unless_said_otherwise() -> None:
    storage = Storage(type="nfs", mount="/m", scratch="/m/x", medium="network")
    assert storage.shared
    assert not Storage(type="xfs", mount="/m", scratch="/m/x").shared


def test_unknown_scheduler_names_those_that_there_are(tmp_path: Path) -> None:
    site = load_site("ruby", CHECKOUT)
    assert site.scheduler is not None
    wrong = site.model_copy(update={"scheduler": site.scheduler.model_copy(update={"name": "slrm"})})
    with pytest.raises(UserError, match=r"did you mean slurm\?"):
        scheduler_of(wrong)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("nodes", 10**30, "nodes: input should be less than or equal to 1000000"),
        # Hexadecimal digits pass YAML's own limit; Python refuses to show such a number.
        ("nodes", "16**5000", "(given: about 2**20000)"),
        ("processes_per_node", 10**18, "less than or equal to 100000"),
        ("cores_per_node", 10**18, "less than or equal to 100000"),
        ("cores_per_node", "$$", "cores_per_node: input should be a valid integer"),
        ("memory_per_node", 0, "memory_per_node: input should be greater than 0"),
        ("limits", {"core_hours": float("inf")}, "limits.core_hours: input should be a finite number"),
        (
            "scheduler",
            {"name": "slurm", "walltime": f"{10**30}min"},
            "scheduler.walltime: 1000000000000000000000... is longer than anybody waits",
        ),
        ("scheduler", {"name": "slurm", "partition": "a\nb"}, "must be one line without control characters"),
        ("launcher_options", ["a\0b"], "must be one line without control characters"),
        ("description", "\x1b[2J", "must be one line without control characters"),
    ],
)
def test_what_no_machine_has_is_refused_in_a_line(
    key: str, value: object, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        load_site("blind", _project(tmp_path, {key: value}))
    message = str(caught.value)
    assert words in message
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ({"bandwidth": float("inf")}, "topology.0.bandwidth: inf is not a rate"),
        ({"bandwidth": 12.5}, "topology.0.bandwidth: 12.5 is not a rate: write 100Gb/s (bits), 12.5GB/s"),
        ({"metadata": {"creat": 5}}, "topology.0.metadata.creat: input should be 'create', 'stat'"),
        ({"metadata": {"stat": 0}}, "topology.0.metadata.stat: input should be greater than 0 (given: 0)"),
        ({"metadata": -1}, "topology.0.metadata: input should be greater than 0 (given: -1)"),
        ({"operations": float("inf")}, "topology.0.operations: input should be a finite number"),
        ({"units": 10**30}, "topology.0.units: input should be less than or equal to 1000000"),
    ],
)
def test_what_no_stage_carries_is_refused_in_a_line(
    stage: dict[str, object], words: str, tmp_path: Path
) -> None:
    storage = {"type": "xfs", "mount": "/m", "scratch": "/m/x", "topology": [{"stage": "client", **stage}]}
    with pytest.raises(UserError) as caught:
        load_site("blind", _project(tmp_path, {"storages": {"disk": storage}}))
    assert words in str(caught.value)


def test_the_disks_of_nodes_are_no_disk_for_all(tmp_path: Path) -> None:
    def load(root: Path, **stage: object) -> Site:
        disk = {"type": "xfs", "mount": "/m", "scratch": "/m/x",
                "topology": [{"stage": "media", "bandwidth": "1GB/s", **stage}]}  # fmt: skip
        return load_site("blind", _project(root, {"nodes": 4, "storages": {"disk": disk}}))

    # At four nodes the ceiling would be one disk's, and each measurement above it.
    with pytest.raises(
        UserError, match=r"storages.disk.topology.0: each node has its own media: per_node: true"
    ):
        load(tmp_path / "wrong")
    found = ceiling_of(load(tmp_path / "right", per_node=True).storages["disk"], "read", 4)
    assert found is not None and found.rate == 4e9


def test_a_site_that_was_written_by_tiercel_is_the_same_again() -> None:
    lassen = load_site("lassen", CHECKOUT)  # in it rates are bytes per second
    assert parse(Site, lassen.model_dump(mode="json"), "site.yaml", dumped=True) == lassen


def _project(root: Path, changes: dict[str, object]) -> Path:
    storages = {"disk": {"type": "xfs", "mount": "/m", "scratch": "/m/x"}}
    folder = root / "site-configs" / "blind"
    folder.mkdir(parents=True)
    (folder / "site.yaml").write_text(
        yaml.dump({"site": "blind", "storages": storages, **changes}).replace("16**5000", f"0x{'f' * 5000}")
    )
    return root


def test_a_site_file_cannot_make_its_site_a_simulated_one(tmp_path: Path) -> None:
    """Its numbers would be the model's, under the name of a machine."""
    folder = tmp_path / "site-configs" / "here"
    folder.mkdir(parents=True)
    folder.joinpath("site.yaml").write_text(
        "site: here\nsimulated: true\nstorages: {a: {type: xfs, mount: /, scratch: /tmp/x, shared: true}}\n"
    )
    with pytest.raises(UserError, match="simulated: is not for site files"):
        load_site("here", tmp_path)


def test_a_type_of_fuse_is_spelled_either_way() -> None:
    for kind in ("sshfs", "fuse.sshfs"):
        assert Storage(type=kind, mount="/m", scratch="/m/x").type == "sshfs"
