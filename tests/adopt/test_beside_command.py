"""`adopt next --beside` and `adopt back --beside`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.adopt.directory_lock import OneAtATime
from barnabas.cli.session import Session
from barnabas.client.features import BrokerFeatures
from barnabas.main import command_group
from barnabas.protocol.errors import KafkaError
from tests.adopt.test_change import ALL
from tests.adopt.worlds import Beside
from tests.cli.made_up_cluster import MadeUpAdmin

NEW = """\
process.roles=broker,controller
node.id=4
listeners=PLAINTEXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:9095
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093
"""


class Admin(MadeUpAdmin):
    """Its metadata.version is that of 4.3."""

    def describe_features(self) -> dict[int, BrokerFeatures | KafkaError]:
        return {1: BrokerFeatures({}, {"metadata.version": 30}, 5)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "new.properties"
    path.write_text(f"{NEW}log.dirs={tmp_path / 'data'}\n")
    return path


def run(world: Beside, config: Path, *words: str) -> Result:
    clock = SimpleNamespace(monotonic=lambda: world.now, sleep=world.pause, strftime=lambda _: "12:00:00")
    with (
        mock.patch.object(Session, "admin", return_value=Admin()),
        mock.patch("barnabas.adopt.beside_command.TwoNodes", return_value=world),
        mock.patch("barnabas.adopt.beside_command.TwoNodesHand", return_value=world),
        mock.patch("barnabas.adopt.change_run.time", clock),
    ):
        given = ["adopt", words[0], "--beside", "2", "--config", str(config), "-b", "one:9092", *words[1:]]
        return CliRunner().invoke(command_group(), given, prog_name="barnabas")


def test_a_node_takes_the_place_of_another_one(config: Path) -> None:
    world = Beside()
    found = run(world, config, "next", "-o", "json")
    assert (found.exit_code, world.acts) == (0, ALL)
    (row,) = json.loads(found.stdout)
    assert (row["node"], row["program"], row["replaces"], row["changed"]) == (4, "barnabas", 2, True)


def test_each_refusal_is_a_line(config: Path) -> None:
    found = run(Beside(refused={True: ("node 3 is down", "it moves")}), config, "next")
    assert (found.exit_code, found.stderr) == (1, "error: node 3 is down\nerror: it moves\n")


def test_a_change_that_stands_still(config: Path) -> None:
    world = Beside(obeys=False)
    world.coming(is_formatted=True)
    found = run(world, config, "next", "--limit", "9")
    assert found.exit_code == 1
    assert found.stderr.splitlines()[-1] == (
        "error: stopped with node 4 on its way to the place of node 2: for 9 s: node 4 is not there yet"
        " (the same command goes on; with the file of node 2, `adopt back --beside 4` gives its place back)"
    )


def test_two_at_the_same_time(config: Path) -> None:
    with OneAtATime(str(config)):
        found = run(Beside(), config, "next")
    assert found.exit_code == 1
    assert found.stderr.startswith("error: another `adopt` command changes the node of ")


def test_the_plan(config: Path) -> None:
    world = Beside()
    found = run(world, config, "next", "--dry-run", "-o", "json", "--start-command", "systemctl start barnabas")
    data = json.loads(found.stdout)
    assert (found.exit_code, world.asked, data["next"], data["refused"]) == (0, [], "format", [])
    assert [each["command"] for each in data["steps"]] == [
        f"barnabas storage format -g -t 4L6g3nShT-eMCtK--X86sw -c {config} --release-version 4.3-IV0"
        " --no-initial-controllers",
        "systemctl start barnabas",
        "barnabas adopt status -b one:9092",
        "barnabas cluster voter add 4 --at 127.0.0.1:9095 -b one:9092",
        "barnabas cluster drain 2 -b one:9092",
        "barnabas cluster voter remove 2 -b one:9092",
        "as the service manager of its machine stops it",
        "barnabas cluster forget 2 -b one:9092",
        "barnabas adopt back --beside 4 -b one:9092 --config FILE",
    ]


def test_the_plan_stops_a_leader_before_it_loses_its_vote(config: Path) -> None:
    world = Beside()
    world.seen = world.seen._replace(leader=2)
    found = run(world, config, "next", "--dry-run", "-o", "json")
    late = [each["command"] for each in json.loads(found.stdout)["steps"]][5:7]
    assert late == ["as the service manager of its machine stops it", "barnabas cluster voter remove 2 -b one:9092"]


def test_a_plan_that_is_refused(config: Path) -> None:
    world = Beside()
    world.seen = world.seen._replace(can_vote=False)
    found = run(world, config, "next", "--dry-run")
    assert found.exit_code == 1
    assert "controller.quorum.voters names its voters" in found.stdout.replace("\n", " ")
