"""All checks together."""

from __future__ import annotations

from dataclasses import replace

from barnabas.adopt.check import checked
from barnabas.adopt.finding import Verdict
from tests.adopt.states import HEALTHY, of_verdict


def test_a_healthy_cluster_in_the_window() -> None:
    assert {each.verdict for each in checked(HEALTHY)} == {Verdict.WORKS}


def test_the_worst_first() -> None:
    found = checked(replace(HEALTHY, moving=1, voters=(1,)))
    assert [each.verdict for each in found][:3] == [Verdict.BLOCKS, Verdict.DIFFERS, Verdict.WORKS]
    assert of_verdict(found, Verdict.BLOCKS) == ["the replicas of 1 partition move"]
