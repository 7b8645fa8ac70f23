"""Formatting a directory, and what `storage info` says of it."""

from __future__ import annotations

import random
from unittest import mock

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory, info, is_in_use, random_uuid
from barnabas.log import meta_properties
from barnabas.metadata.bootstrap import bootstrap_records, read_bootstrap
from barnabas.metadata.metadata_batch_loader import load_snapshot
from barnabas.protocol.primitives import Uuid, uuid_from_str, uuid_to_str
from barnabas.raft.voters import Voter, VoterSet
from barnabas.simulation.disk import SimDisk

CONFIG = BrokerConfig.from_properties({"listeners": "PLAINTEXT://localhost:9092"})


def formatted(cluster_id: str | None = "abc") -> SimDisk:
    disk = SimDisk()
    format_directory(disk, "/data", cluster_id, 3, CONFIG, random.Random(1))
    return disk


def test_the_files_are_kafkas() -> None:
    disk = formatted()
    assert disk.paths() == [
        "/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
        "/data/bootstrap.checkpoint",
        "/data/meta.properties",
    ]
    meta = meta_properties.read(disk, "/data")
    assert meta is not None
    assert (meta.cluster_id, meta.node_id) == ("abc", 3)
    assert len(uuid_from_str(meta.directory_id or "")) == 16
    assert list(load_snapshot(disk.contents("/data/bootstrap.checkpoint"))) == bootstrap_records()
    assert read_bootstrap(disk, "/data") == bootstrap_records()
    assert read_bootstrap(SimDisk(), "/data") is None


def test_an_interrupted_attempt_with_other_voters_leaves_none_of_them() -> None:
    disk = formatted()
    disk.remove("/data/meta.properties")
    format_directory(disk, "/data", "abc", 3, CONFIG, random.Random(1), standalone=False)
    assert disk.paths() == ["/data/bootstrap.checkpoint", "/data/meta.properties"]


def test_a_directory_without_the_metadata_log_has_an_id_of_its_own_and_no_voters() -> None:
    disk = formatted()
    voters = VoterSet.of([Voter(3, Uuid(b"v" * 16), ())])
    for root, options in (("/second", {}), ("/third", {"initial_voters": voters})):
        format_directory(disk, root, "abc", 3, CONFIG, random.Random(len(root)), has_metadata=False, **options)
        assert [each for each in disk.paths() if each.startswith(root)] == [
            f"{root}/bootstrap.checkpoint",
            f"{root}/meta.properties",
        ]
    owners = [meta_properties.read(disk, root) for root in ("/data", "/second", "/third")]
    ids = {owner.directory_id for owner in owners if owner is not None}
    assert (len(ids), uuid_to_str(Uuid(b"v" * 16)) in ids) == (3, False)


def test_a_formatted_directory_is_not_formatted_again() -> None:
    with pytest.raises(CannotStart, match=r"log directory /data is already formatted \(--ignore-formatted skips it\)"):
        format_directory(formatted(), "/data", None, 3, CONFIG, random.Random(1))


@pytest.mark.parametrize("call", range(1, 60))
def test_an_interrupted_formatting_can_be_repeated(call: int) -> None:
    disk = SimDisk(call)
    disk.fail_call(call)
    try:
        format_directory(disk, "/data", "abc", 3, CONFIG, random.Random(1))
    except OSError:
        disk.crash()
    else:
        disk = disk.copy()
    if meta_properties.read(disk, "/data") is None:
        format_directory(disk, "/data", "abc", 3, CONFIG, random.Random(1))
    assert read_bootstrap(disk, "/data") == bootstrap_records()
    assert meta_properties.read(disk, "/data") is not None


def test_ids_have_no_leading_dash_and_come_from_the_given_randomness() -> None:
    ids = [random_uuid(random.Random(seed)) for seed in range(500)]
    assert all(len(text) == 22 and text[0] != "-" for text in ids)
    assert len(set(ids)) == len(ids)
    assert random_uuid(random.Random(5)) == ids[5]


def free(directory: str) -> None:
    """Accept every directory."""


def test_info() -> None:
    disk = formatted()
    meta = meta_properties.read(disk, "/data")
    assert meta is not None
    assert info(disk, ["/data"], free) == ({"/data": meta}, [])


def test_info_of_what_is_missing_or_broken() -> None:
    disk = SimDisk()
    disk.mkdir("/empty")
    assert info(disk, ["/empty", "/nowhere"], free).problems == [
        "/empty is not formatted (`barnabas storage format --ignore-formatted -c FILE` formats it)",
        "/nowhere does not exist (check the path)",
    ]
    disk.put("/file", b"")
    assert info(disk, ["/file"], free).problems == ["/file is a file, not a directory (pass another --data-dir)"]
    disk.put("/empty/meta.properties", b"version=1\n")
    (problem,) = info(disk, ["/empty"], free).problems
    assert problem.startswith("cannot read /empty/meta.properties: ")
    assert "no valid node.id" in problem


def test_info_of_directories_of_two_nodes() -> None:
    disk = formatted()
    disk.put("/other/meta.properties", b"version=1\ncluster.id=other\nnode.id=3\n")
    found = info(disk, ["/data", "/other"], free)
    assert (len(found.formatted), found.problems) == (2, ["the directories belong to different clusters or nodes"])


def test_a_directory_is_in_use_while_its_lock_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = formatted()
    assert is_in_use(disk, "/data") is False
    lock = disk.lock("/data/.lock")
    assert is_in_use(disk, "/data") is True
    lock.release()
    assert is_in_use(disk, "/data") is False
    monkeypatch.setattr(disk, "exists", lambda path: True)
    monkeypatch.setattr(disk, "lock", mock.Mock(side_effect=OSError(30, "Read-only file system")))
    assert is_in_use(disk, "/data") is None
