"""`barnabas topic import` against a broker: what it sends, what it refuses, and how it goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cli.export_folder import MANIFEST, read_manifest
from barnabas.client.admin import Admin, ConfigResource, ResourceType, result
from barnabas.embedded.broker import Broker
from tests.cli.exports import KILLED, content, content_of, killed_at, odd_records, refused, row, write
from tests.cli.test_commands import run

pytestmark = pytest.mark.slow
MORE = pytest.mark.conform  # a process for each kill takes a second


@pytest.fixture
def servers(barnabas: Broker) -> str:
    barnabas.create_topic("orders", partitions=2, config={"retention.ms": "-1"})
    return barnabas.bootstrap_servers


def setting(servers: str, topic: str, name: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with Admin(servers) as admin:
        (entry,) = result(admin.describe_configs([resource], names=[name])[resource])
    return entry.value


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_a_round_trip_to_the_byte(servers: str, tmp_path: Path, name: str) -> None:
    records = odd_records(600)
    write(servers, "orders", records)
    row(servers, "export", "orders", str(tmp_path), "--format", name)
    checked = row(servers, "import", str(tmp_path), "copy", "--create", "--dry-run")
    assert (checked["records"], checked["status"]) == (600, "would be sent")
    assert refused(servers, "import", str(tmp_path), "copy") == (
        "topic copy does not exist (--create creates it with 2 partitions and the settings of the export)"
    )
    found = row(servers, "import", str(tmp_path), "copy", "--create")
    assert (found["records"], found["of"], found["status"]) == (600, 600, "sent")
    assert content_of(servers, "copy") == content(records)
    assert setting(servers, "copy", "retention.ms") == "-1"
    assert row(servers, "import", str(tmp_path), "copy")["status"] == "finished before"
    assert len(content_of(servers, "copy")) == 600
    again = row(servers, "import", str(tmp_path), "copy", "--name", "again")
    assert (again["name"], again["status"]) == ("again", "sent")
    assert len(content_of(servers, "copy")) == 1200


# A run has four transactions, of a note and of 500, 500 and 200 records; each with a moment before and after its commit.
@pytest.mark.parametrize(
    "moments", [(3,), *(pytest.param(each, marks=MORE) for each in ((0, 1), (3, 2), (4, 1), (7,)))], ids=str
)
def test_killed_at_any_moment_it_goes_on(
    servers: str, barnabas: Broker, tmp_path: Path, moments: tuple[int, ...]
) -> None:
    records = odd_records(1200)
    write(servers, "orders", records)
    row(servers, "export", "orders", str(tmp_path))
    barnabas.create_topic("copy", partitions=3, config={"retention.ms": "-1"})
    for moment in moments:
        assert killed_at(moment, servers, "import", str(tmp_path), "copy") == KILLED
    found = row(servers, "import", str(tmp_path), "copy")
    assert (found["records"], found["of"]) == (1200, 1200)
    assert found["status"] == ("finished before" if moments == (7,) else "sent")
    assert content_of(servers, "copy") == content(records)


def test_an_empty_topic(servers: str, tmp_path: Path) -> None:
    row(servers, "export", "orders", str(tmp_path))
    for status in ("sent", "finished before"):
        found = row(servers, "import", str(tmp_path), "copy", "--create")
        assert (found["records"], found["of"], found["status"]) == (0, 0, status)


def test_a_topic_with_times_of_its_own(servers: str, barnabas: Broker, tmp_path: Path) -> None:
    barnabas.create_topic("stamped", partitions=2, config={"message.timestamp.type": "LogAppendTime"})
    write(servers, "stamped", odd_records(6))
    stamped = content_of(servers, "stamped")
    row(servers, "export", "stamped", str(tmp_path))
    line = json.loads(next(tmp_path.glob("*.jsonl")).read_text().splitlines()[0])
    assert line["timestampType"] == 1
    result = run("topic", "import", str(tmp_path), "copy", "--create", "-b", servers)
    assert "message.timestamp.type=LogAppendTime is not set, so that the records keep their times" in result.stderr
    assert content_of(servers, "copy") == stamped
    result = run("topic", "import", str(tmp_path), "stamped", "-b", servers)
    assert "warning: topic stamped sets its own times" in result.stderr


def test_what_is_refused(servers: str, barnabas: Broker, tmp_path: Path) -> None:
    folder = str(tmp_path / "export")
    assert refused(servers, "import", folder).startswith(f"there is no folder {folder}")
    write(servers, "orders", odd_records(6))
    row(servers, "export", "orders", folder)
    barnabas.create_topic("narrow", partitions=1)
    assert refused(servers, "import", folder, "narrow") == (
        "topic narrow has fewer partitions (1) than the export (2) (`barnabas topic alter narrow -p 2` adds them)"
    )
    assert "add --create" in refused(servers, "import", folder, "-r", "1")
    assert "is not a valid name" in refused(servers, "import", folder, "--name", "a b")
    barnabas.create_topic("copy", partitions=2)
    row(servers, "import", folder, "copy", "--name", "mine")
    assert "import mine began with another export, or into another topic (copy)" in refused(
        servers, "import", folder, "orders", "--name", "mine"
    )
    with Admin(servers) as admin:
        admin.delete_topics(["copy"])
    assert "topic copy was deleted and created again" in refused(
        servers, "import", folder, "copy", "--name", "mine", "--create"
    )
    (file, *_) = read_manifest(tmp_path / "export").files
    path = tmp_path / "export" / file.name
    data = path.read_bytes()
    path.write_bytes(data[:-2] + b" \n")
    assert "was changed since the export" in refused(servers, "import", folder, "absent", "--create")
    path.unlink()
    assert "of the export is gone" in refused(servers, "import", folder, "absent", "--create")
    with Admin(servers) as admin:
        assert "absent" not in [each.name for each in admin.list_topics()], (
            "files are checked before the topic is created"
        )
    path.write_bytes(data)
    manifest = tmp_path / "export" / MANIFEST
    manifest.write_bytes(manifest.read_bytes().replace(b'"version": 1', b'"version": 2'))
    assert refused(servers, "import", folder, "absent") == (
        f"{manifest} has version 2, and this release reads version 1: use a newer release"
    )
