"""Three nodes of Apache Kafka become barnabas under load, and go back; and what the command line asks for."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests.cluster.exchange import BACK, CELLS, QUORUMS, SECURITY, THERE, VERSIONS, Cell, can_change, cells, play
from tests.cluster.node_process import NodeProcess


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


def test_a_voter_of_a_fixed_quorum_has_no_node_beside_it(tmp_path: Path) -> None:
    way = THERE._replace(by="beside")
    with_voters, without = (NodeProcess(tmp_path, 1, roles) for roles in (("broker", "controller"), ("broker",)))
    assert can_change(Cell("4.3.1", "dynamic", "plain"), way, with_voters)
    assert can_change(Cell("4.3.1", "dedicated", "plain"), way, without)
    assert not can_change(Cell("4.3.1", "dedicated", "plain"), way, with_voters)
    assert can_change(Cell("4.3.1", "static", "plain"), THERE, with_voters)


@pytest.mark.conform
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "cell", [Cell("4.3.1", "dynamic", "secured"), Cell("4.3.1", "dedicated", "plain")], ids=lambda cell: cell.quorum
)
@pytest.mark.parametrize("by", ["commands", "beside"])
def test_there_and_back_by_the_commands(tmp_path: Path, cell: Cell, by: str) -> None:
    ways = [each._replace(by=by) for each in (THERE, BACK)]
    result = play(cell, tmp_path, ways, seed=7, has_kills=True)
    assert not result.problems, str(result)


@pytest.mark.conform
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_there_and_back(tmp_path: Path) -> None:
    result = play(Cell("4.3.1", "static", "plain"), tmp_path, [THERE, BACK], seed=7)
    assert not result.problems, str(result)
    assert {way: len(each) for way, each in result.gaps.items()} == {"there": 3, "back": 3}
