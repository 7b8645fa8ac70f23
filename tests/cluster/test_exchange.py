"""Three nodes of Apache Kafka become barnabas under load, and go back; and what the command line asks for."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests.cluster.exchange import BACK, CELLS, QUORUMS, SECURITY, THERE, VERSIONS, Cell, cells, play


def asked(**given):
    return cells(argparse.Namespace(**{"all": False, "versions": None, "quorum": None, "security": None, **given}))


def test_the_default_has_each_value_once():
    found = asked()
    assert found == CELLS
    assert {each.version for each in found} == set(VERSIONS)
    assert {each.quorum for each in found} == set(QUORUMS)
    assert {each.security for each in found} == set(SECURITY)


def test_the_product():
    assert len(asked(all=True)) == len(VERSIONS) * len(QUORUMS) * len(SECURITY)
    assert asked(versions=["4.0.0", "4.3.1"], quorum=["dynamic"]) == [
        Cell("4.0.0", "dynamic", "plain"),
        Cell("4.3.1", "dynamic", "plain"),
    ]


@pytest.mark.conform
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_there_and_back(tmp_path: Path) -> None:
    result = play(Cell("4.3.1", "static", "plain"), tmp_path, [THERE, BACK], seed=7)
    assert not result.problems, str(result)
    assert {way: len(each) for way, each in result.gaps.items()} == {"there": 3, "back": 3}
