"""The end of a run that was refused, or stands still; `test_change_command` and `test_beside_command` have the rest."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest

from barnabas.adopt.change import Act, Step
from barnabas.adopt.change_run import run_change, show_plan
from barnabas.cli.failure import Failure, Failures, Quiet
from tests.adopt.worlds import InPlace


def run(world: InPlace, session: mock.Mock) -> None:
    clock = SimpleNamespace(monotonic=lambda: world.now, sleep=world.pause, strftime=lambda _: "12:00:00")
    with mock.patch("barnabas.adopt.change_run.time", clock):
        run_change(session, world, world, {"NODE": 2}, "stopped with node 2 on its way", "type it again", 9)


def test_the_end_of_a_run() -> None:
    session = mock.Mock()
    run(InPlace(), session)
    ((columns, [row]), _) = session.output.table.call_args
    assert (columns, row[:2]) == (("NODE", "CHANGED", "SECONDS"), (2, True))
    with pytest.raises(Failures) as refused:
        run(InPlace(refused={True: ("one", "two")}), session)
    assert [str(each) for each in refused.value.failures] == ["one", "two"]
    with pytest.raises(Failure, match="stopped with node 2 on its way: for 9 s: node 2 still runs"):
        run(InPlace(obeys=False), session)


def test_a_plan_asks_what_forbids_the_first_step_alone() -> None:
    world = InPlace(refused={True: ("ill",)})
    show_plan(mock.Mock(), world, Step(Act.START, needs_health=False), [], {}, "")
    for step in (Step(Act.STOP), Step(Act.REFUSE, ("no",))):
        with pytest.raises(Quiet):
            show_plan(mock.Mock(), world, step, [], {}, "")
