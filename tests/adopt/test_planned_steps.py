"""The plan has a command for each step, and the way to undo it."""

from __future__ import annotations

from barnabas.adopt.change import Act
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.own_files import OwnFiles
from barnabas.adopt.planned_steps import planned_steps, ways_of
from barnabas.client.program import Program

FILES = OwnFiles(GivenFile("my server.properties", 2), 2, "/data", "c")


def commands(wanted: Program, given: dict[Act, str | None], holder: int | None = 71) -> list[str]:
    ways = ways_of(FILES, wanted, given, holder)
    return [each.command for each in planned_steps(FILES, wanted, ways, ["-b", "a:1,b:2"])]


def test_what_to_type() -> None:
    assert commands(Program.BARNABAS, {}) == [
        "barnabas adopt check -b a:1,b:2 --config 'my server.properties'",
        "kill -TERM 71, or as your service manager stops it",
        "barnabas start --config 'my server.properties'",
        "barnabas adopt status -b a:1,b:2",
        "barnabas adopt back -b a:1,b:2 --config 'my server.properties'",
    ]


def test_the_way_back_with_commands_that_were_given() -> None:
    given: dict[Act, str | None] = {Act.STOP: "systemctl stop barnabas", Act.START: "systemctl start kafka"}
    _, stop, start, _, undo = commands(Program.KAFKA, given)
    assert (stop, start) == ("systemctl stop barnabas", "systemctl start kafka")
    assert undo.startswith("barnabas adopt next ")
    assert commands(Program.KAFKA, {}, None)[1:3] == [
        "as your service manager stops it",
        "bin/kafka-server-start.sh 'my server.properties'",
    ]
