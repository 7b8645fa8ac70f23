"""`broker self-test` on a real broker and real directories, and what it says of a disk that it does not like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli import broker_self_test
from barnabas.cli.broker import broker
from barnabas.cli.disk_test import DiskSpeed, NoRoom
from barnabas.cli.latencies import Summary


@pytest.fixture(scope="module")
def running() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def run(*arguments: str) -> Result:
    return CliRunner().invoke(broker, ["self-test", *arguments])


def test_disks_and_network(running: barnabas.Broker, tmp_path: Path) -> None:
    directories = [tmp_path / name for name in ("a", "b", "metadata")]
    for each in directories:
        each.mkdir()
    first, second, of_metadata = directories
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={first}, {second}\nmetadata.log.dir={of_metadata}\n")
    answer = run("-c", str(file), "--size-mb", "1", "--within", "100ms", "-b", running.bootstrap_servers, "-o", "json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert [each["directory"] for each in found["disks"]] == [str(each) for each in directories]
    assert all(each["written"] == "1.00 MB" and each["syncs"] > 0 for each in found["disks"])
    (trip,) = found["network"]
    assert trip["trips"] > 0
    assert 0 < trip["trip_p50_ms"] <= trip["trip_max_ms"]
    assert [path for each in directories for path in each.iterdir()] == []


def test_without_a_directory_only_the_network(running: barnabas.Broker) -> None:
    answer = run("-b", running.bootstrap_servers)
    assert answer.exit_code == 0
    assert answer.stderr == "no disk was tested: name directories, or --config FILE for its directories\n"
    assert "TRIP-P50-MS" in answer.stdout


def test_what_cannot_be_tested(tmp_path: Path) -> None:
    assert run("--no-network").exit_code == 2
    absent = run("--no-network", str(tmp_path / "absent"))
    assert (absent.exit_code, absent.stdout) == (1, "")
    assert (
        f"{tmp_path}/absent: no such file or directory (make it on the disk to test, or name another)"
        in absent.stderr.replace("\n", " ")
    )
    (tmp_path / "empty").write_text("node.id=1\n")
    assert "has no log.dirs (name the directories instead)" in run("-c", str(tmp_path / "empty")).stderr.replace(
        "\n", " "
    )


@pytest.mark.parametrize(
    ("p50", "p99", "said"),
    [
        (0.001, 0.002, "disk: a sync takes no time, so nothing reaches a disk: a tmpfs, or one that does not sync\n"),
        (1, 80, "disk: one sync of a hundred takes over 50 ms; every change of metadata waits for one\n"),
        (1, 5, ""),
    ],
)
def test_what_it_says_of_a_disk(monkeypatch: pytest.MonkeyPatch, p50: float, p99: float, said: str) -> None:
    speed = DiskSpeed(1_000_000, 5e8, 10, Summary(p50, p99, p50, p99, p99, p99))
    monkeypatch.setattr(broker_self_test, "measure_disk", lambda *_: speed)
    answer = run("disk", "--no-network")
    assert answer.exit_code == 0
    assert answer.stdout.split()[7:11] == ["disk", "1.00", "MB", "500"]
    assert answer.stderr == said


def test_a_disk_without_room_is_a_failure_and_the_others_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(directory: str, size: int, within_s: float) -> DiskSpeed:
        if directory == "full":
            raise NoRoom("1 MB of 9 MB are free: 5 MB of a test would leave too little")
        return DiskSpeed(size, 5e8, 10, Summary(1, 1, 1, 1, 1, 1))

    monkeypatch.setattr(broker_self_test, "measure_disk", measure)
    answer = run("full", "fine", "--no-network", "-o", "json")
    assert answer.exit_code == 1
    assert "error: full: 1 MB of 9 MB are free" in answer.stderr
    assert [each["directory"] for each in json.loads(answer.stdout)["disks"]] == ["fine"]
