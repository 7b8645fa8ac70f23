"""`barnabas topic export` against a broker: what it writes, what it refuses, and how it goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.cli.export_folder import MANIFEST, UNFINISHED, opened_folder, read_manifest
from barnabas.cli.export_json_lines import read_lines
from barnabas.client.admin import Admin, TopicPartition, results
from barnabas.embedded.broker import Broker
from barnabas.retries.record import Record
from tests.cli.exports import KILLED, content, killed_at, names, odd_records, refused, row, write

pytestmark = pytest.mark.slow
MORE = pytest.mark.conform  # a process for each kill takes a second


@pytest.fixture
def servers(barnabas: Broker) -> str:
    barnabas.create_topic("orders", partitions=2, config={"retention.ms": "-1", "max.message.bytes": "2000000"})
    return barnabas.bootstrap_servers


def records_in(folder: Path) -> list[Record]:
    return [record for each in read_manifest(folder).files for record in read_lines(folder / each.name, "orders", 0)]


def test_only_what_was_committed_and_the_settings(servers: str, tmp_path: Path) -> None:
    records = odd_records(60)
    write(servers, "orders", records)
    folder = tmp_path / "export"
    found = row(servers, "export", "orders", str(folder))
    assert (found["files"], found["records"], found["status"]) == (2, 60, "exported")
    assert content(records_in(folder)) == content(records)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    assert manifest["settings"] == {"retention.ms": "-1", "max.message.bytes": "2000000"}
    assert [each["name"] for each in manifest["files"]] == names(folder)[:2]
    assert row(servers, "export", "orders", str(folder))["status"] == "finished before"
    everything = row(servers, "export", "orders", str(tmp_path / "all"), "--isolation-level", "read_uncommitted")
    assert everything["records"] == 66


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--from", "1:2"), [2, 3]),
        (("--from", "1", "--to", "2"), [2, 3]),
        (("--filter", "key=k4"), [4]),
        (("--filter", "partition=1", "--to", "-1"), [1, 3]),
    ],
    ids=str,
)
def test_what_is_chosen(servers: str, tmp_path: Path, options: tuple[str, ...], expected: list[int]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(6):
        producer.produce("orders", str(number), f"k{number}", partition=number % 2)
    assert producer.flush(30) == 0
    assert row(servers, "export", "orders", str(tmp_path), *options)["records"] == len(expected)
    assert sorted(int(each.value or b"") for each in records_in(tmp_path)) == expected


def test_files_have_a_bounded_size(servers: str, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for _ in range(30):
        producer.produce("orders", bytes(range(65, 91)) * 4000, partition=0)
    assert producer.flush(30) == 0
    assert row(servers, "export", "orders", str(tmp_path), "--file-mb", "1")["files"] == 3
    assert all(each.bytes < 1.5 * 1024 * 1024 for each in read_manifest(tmp_path).files)
    assert [each.offset for each in records_in(tmp_path)] == list(range(30))


# A finished export has six calls that count: two notes of the manifest, two files, two notes; each with a moment before and after it.
@pytest.mark.parametrize(
    "moments", [(2, 3), pytest.param((0, 1), marks=MORE), pytest.param((7, 0, 5), marks=MORE)], ids=str
)
def test_killed_at_any_moment_it_goes_on(servers: str, tmp_path: Path, moments: tuple[int, ...]) -> None:
    records = odd_records(60)
    write(servers, "orders", records)
    for moment in moments:
        assert killed_at(moment, servers, "export", "orders", str(tmp_path)) == KILLED
        assert not (tmp_path / MANIFEST).exists()
    write(servers, "orders", records)
    found = row(servers, "export", "orders", str(tmp_path))
    assert (found["records"], found["status"]) == (60, "exported")
    assert content(records_in(tmp_path)) == content(records), "the end is that of the first run"
    assert len(names(tmp_path)) == 3


def test_an_export_that_goes_on_says_what_was_deleted(servers: str, tmp_path: Path) -> None:
    write(servers, "orders", odd_records(60))
    assert killed_at(1, servers, "export", "orders", str(tmp_path)) == KILLED
    assert names(tmp_path) == [UNFINISHED]
    with Admin(servers) as admin:
        results(admin.delete_records({TopicPartition("orders", 1): 7}))
    found = row(servers, "export", "orders", str(tmp_path))
    assert found["records"] == 53
    assert [(each.begin, each.deleted, each.log_start) for each in read_manifest(tmp_path).places] == [
        (0, 0, 0),
        (0, 7, 7),
    ]


def test_a_partition_that_is_deleted_while_it_is_read_is_an_error(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the log start offset says is old when the reader comes: the broker's answer counts."""
    write(servers, "orders", odd_records(60))
    with Admin(servers) as admin:
        results(admin.delete_records({TopicPartition("orders", 1): 7}))
    monkeypatch.setattr("barnabas.cli.topic_export.places_of", lambda *arguments: {0: (0, 30), 1: (0, 30)})
    monkeypatch.setattr("barnabas.cli.topic_export.log_bounds", lambda admin, wanted: dict.fromkeys(wanted, (0, 30)))
    assert refused(servers, "export", "orders", str(tmp_path)) == (
        "records were deleted before the export had read them (the same command goes on after them)"
    )
    monkeypatch.undo()
    # Before offset 30 each partition has 24 records that were committed.
    assert row(servers, "export", "orders", str(tmp_path))["records"] == 24 + 24 - 7
    assert [each.deleted for each in read_manifest(tmp_path).places] == [0, 7]


def test_what_is_refused(servers: str, barnabas: Broker, tmp_path: Path) -> None:
    folder = str(tmp_path / "export")
    assert refused(servers, "export", "ordres", folder).startswith("topic ordres does not exist; did you mean orders?")
    assert refused(servers, "export", "orders", folder, "--from", "noon").startswith("cut noon does not exist")
    with Admin(servers) as admin:
        admin.store_cut("old", admin.take_cut(["orders"], now_ms=1))
        admin.delete_topics(["orders"])
        barnabas.create_topic("orders", partitions=2)
        assert refused(servers, "export", "orders", folder, "--from", "old") == (
            "cut old is of a topic orders that was deleted; this one was created later (give a time or an offset)"
        )
    assert names(Path(folder)) == []
    row(servers, "export", "orders", folder)
    assert refused(servers, "export", "orders", folder, "--from", "1").startswith(
        f"the export in {folder} began as `barnabas topic export orders {folder} --from start"
    )
    with Admin(servers) as admin:
        admin.delete_topics(["orders"])
    barnabas.create_topic("orders", partitions=2)
    assert "topic orders was deleted and created again" in refused(servers, "export", "orders", folder)
    (tmp_path / "export" / MANIFEST).write_bytes(b"{}")
    assert refused(servers, "export", "orders", folder) == f"{folder}/{MANIFEST} is not that of an export"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis").touch()
    assert "has other files, such as thesis" in refused(servers, "export", "orders", str(tmp_path / "other"))
    with opened_folder(tmp_path / "busy"):
        assert "another export writes" in refused(servers, "export", "orders", str(tmp_path / "busy"))
