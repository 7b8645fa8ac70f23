"""`adopt next` and `adopt back`: what they print, their exit codes, two at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.adopt.directory_lock import OneAtATime
from barnabas.cli.session import Session
from barnabas.main import command_group
from tests.adopt.sights import KAFKA, OURS, STOPPED
from tests.adopt.test_own_files import FILE, formatted
from tests.adopt.worlds import InPlace
from tests.cli.made_up_cluster import MadeUpAdmin


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"{FILE}log.dirs={formatted(tmp_path / 'data')}\n")
    return path


@contextmanager
def in_world(world: InPlace) -> Iterator[None]:
    clock = SimpleNamespace(monotonic=lambda: world.now, sleep=world.pause, strftime=lambda _: "12:00:00")
    with (
        mock.patch.object(Session, "admin", return_value=MadeUpAdmin()),
        mock.patch("barnabas.adopt.change_command.NodeWatch", return_value=world),
        mock.patch("barnabas.adopt.change_command.Operator", return_value=world),
        mock.patch("barnabas.adopt.change_run.time", clock),
    ):
        yield


def run(world: InPlace, config: Path, *words: str) -> Result:
    with in_world(world):
        given = ["adopt", *(words or ("next",)), "--config", str(config), "-b", "one:9092"]
        return CliRunner().invoke(command_group(), given, prog_name="barnabas")


def test_a_node_becomes_barnabas(config: Path) -> None:
    found = run(InPlace(), config, "next", "-o", "json")
    assert (found.exit_code, found.stdout) == (0, found.stdout)
    (row,) = json.loads(found.stdout)
    assert (row["node"], row["program"], row["changed"]) == (2, "barnabas", True)
    assert found.stderr.splitlines()[0] == "12:00:00 waiting: node 2 still runs"


def test_a_node_goes_back(config: Path) -> None:
    world = InPlace(program=OURS, wanted=KAFKA, starts_as=KAFKA)
    found = run(world, config, "back", "--kafka-release", "4.3")
    assert found.exit_code == 0
    assert "Apache Kafka" in found.stdout


def test_each_refusal_is_a_line(config: Path) -> None:
    found = run(InPlace(refused={True: ("node 3 is down", "it moves")}), config)
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr == "error: node 3 is down\nerror: it moves\n"


@pytest.mark.parametrize("limit", ["9", "9s", "PT9S"])
def test_a_change_that_stands_still(config: Path, limit: str) -> None:
    found = run(InPlace(obeys=False), config, "next", "--limit", limit)
    assert found.exit_code == 1
    assert found.stderr.splitlines()[-1] == (
        "error: stopped with node 2 on its way: for 9 s: node 2 still runs"
        " (the same command goes on; `adopt back` lets it be Apache Kafka again)"
    )


def test_two_at_the_same_time(config: Path) -> None:
    with OneAtATime(str(config.parent / "data")):
        found = run(InPlace(), config)
    assert found.exit_code == 1
    assert found.stderr.startswith("error: another `adopt` command changes the node of ")


def test_the_plan(config: Path) -> None:
    world = InPlace()
    found = run(world, config, "next", "--dry-run", "-o", "json", "--stop-command", "systemctl stop kafka")
    data = json.loads(found.stdout)
    assert (found.exit_code, world.asked, data["next"], data["refused"]) == (0, [], "stop", [])
    assert [each["command"] for each in data["steps"]] == [
        f"barnabas adopt check -b one:9092 --config {config}",
        "systemctl stop kafka",
        f"barnabas start --config {config}",
        "barnabas adopt status -b one:9092",
        f"barnabas adopt back -b one:9092 --config {config}",
    ]


def test_the_plan_of_what_is_done(config: Path) -> None:
    found = run(InPlace(program=OURS), config, "next", "--dry-run")
    assert (found.exit_code, found.stdout, found.stderr) == (0, "", "nothing to do: node 2 is barnabas already\n")


def test_a_plan_that_is_refused(config: Path) -> None:
    world = InPlace(program=STOPPED, is_held=False, refused={False: ("of another cluster",)})
    found = run(world, config, "next", "-d")
    assert (found.exit_code, world.asked) == (1, [])
    assert "REFUSED-BECAUSE\nof another cluster\n" in found.stdout


def test_without_a_file() -> None:
    found = CliRunner().invoke(command_group(), ["adopt", "next"], prog_name="barnabas")
    assert (found.exit_code, "--config" in found.stderr) == (2, True)
