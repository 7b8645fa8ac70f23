"""The checkers of the topics with settings of their own find what they look for, and a seed of each world sees it and runs clean."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation import checkers
from tests.simulation.aging import BY_SIZE, BY_TIME, AgingTopic
from tests.simulation.cluster import run
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.history import Batch, History, Partition
from tests.simulation.keyed_history import Entry, Found, KeyedHistory, Reading
from tests.simulation.retention_history import Deletion, RetentionHistory
from tests.simulation.side_topic import View
from tests.simulation.unclean_history import UncleanHistory

pytestmark = pytest.mark.usefixtures("quiet")

P = Partition("t", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "seen"), [(26, "deletions by retention"), (23, "cleanings"), (218, "unclean elections")]
)
def test_a_seed_sees_what_its_world_is_for_and_runs_clean(seed: int, seen: str) -> None:
    result = run(seed)
    assert result.violations == {}
    assert result.counts()[seen] > 0


def test_ordinary_seeds_have_each_topic() -> None:
    plans = [ClusterPlan.draw(seed) for seed in range(200)]
    assert sum(bool(plan.retention) for plan in plans) >= 8
    assert sum(plan.compacts for plan in plans) >= 8
    assert sum(plan.elects_uncleanly for plan in plans) >= 8


@pytest.mark.parametrize(
    ("limit", "jumped_ms", "waits"), [(BY_TIME, -31_000, False), (BY_TIME, -500, True), (BY_SIZE, -31_000, True)]
)
def test_nobody_waits_for_a_deletion_by_time_where_a_clock_is_set_back(
    limit: str, jumped_ms: int, *, waits: bool
) -> None:
    node: Any = SimpleNamespace(clock_jumped_ms=jumped_ms)
    view = View([node], lambda _: None, lambda _: None, lambda: 0)
    topic = AgingTopic(limit, History(), view, random.Random, 0.1)
    assert ("the deletions of aging" in topic.counts()) == waits


def names(found: History) -> set[str]:
    return {name for name, check in checkers.ALL.items() if check(found)}


@pytest.mark.parametrize(
    ("youngest_ms", "size", "clean"),
    [(1001, 501, True), (1000, None, False), (None, 499, False), (None, None, True)],
)
def test_a_deletion_that_the_settings_do_not_ask_for_is_found(
    youngest_ms: int | None, size: int | None, *, clean: bool
) -> None:
    deletion = Deletion(P, "node 1", 3, 7, youngest_ms, size)
    known = RetentionHistory([P], retention_ms=1000, retention_bytes=500, deletions=[deletion])
    assert names(History(retention=known)) == (set() if clean else {"retention"})


def test_a_world_with_retention_that_saw_no_deletion_counts_that() -> None:
    tally = History(retention=RetentionHistory([P])).tally()
    assert tally["worlds with retention and no deletion"] == 1
    assert History().tally() == {}


def test_an_acknowledged_record_that_a_reader_saw_otherwise_is_found() -> None:
    batch = Batch("a0", P, [b"x"], acknowledged_at=1.0, base_offset=3, survives=True)
    known = RetentionHistory([P], seen={P: {3: b"y"}})
    found = History(batches=[batch], retention=known, final_bounds={P: (4, 4)})
    assert names(found) == {"retention"}


@pytest.mark.parametrize(
    ("log", "elections", "clean"),
    [
        ([(0, b"a"), (1, b"b")], {}, True),
        ([(0, b"a")], {3: None}, True),
        ([(0, b"a")], {}, False),
        ([(0, b"a"), (2, b"b")], {3: None}, False),
        ([(0, b"a"), (1, b"a")], {3: None}, False),
        ([(0, b"a"), (1, b"c")], {3: None}, False),
    ],
)
def test_a_loss_that_no_unclean_election_explains_is_found(
    log: list[tuple[int, bytes]], elections: dict[int, None], *, clean: bool
) -> None:
    bounds = 0, log[-1][0] + 1
    known = UncleanHistory([P], elections, sent={b"a": True, b"b": True}, log=log, bounds=bounds)
    assert names(History(unclean=known)) == (set() if clean else {"unclean_elections"})


def test_an_unclean_election_where_it_is_off_is_found() -> None:
    known = UncleanHistory([P], {3: None}, {"x-0 had a leader that may lack records": None})
    assert names(History(unclean=known)) == {"unclean_elections"}


def keyed(*seen: Found, ended_ms: int = 50, is_of_late_replicas: bool = False) -> History:
    """A value, an aborted one, and a tombstone of one key, and what a reader has found of them."""
    entries = [
        Entry(0, b"k", b"0", 10, 0, True, True),
        Entry(1, b"k", b"1", 20, 2, False, True),
        Entry(2, b"k", None, 30, 4, True, True),
    ]
    reading = Reading("a reader", {b"k": 2}, 6, ended_ms, list(seen), is_of_late_replicas)
    return History(keyed=KeyedHistory([P], 100, entries={each.number: each for each in entries}, readings=[reading]))


VALUE, ABORTED, TOMBSTONE = Found(0, b"k", b"0", 0), Found(2, b"k", b"1", 1), Found(4, b"k", None, 2)


@pytest.mark.parametrize(
    ("found", "clean"),
    [
        (keyed(TOMBSTONE), True),
        (keyed(VALUE, TOMBSTONE), True),
        (keyed(), False),
        (keyed(ended_ms=130), True),
        (keyed(VALUE), False),
        (keyed(VALUE, ended_ms=130), False),
        (keyed(VALUE, ended_ms=130, is_of_late_replicas=True), True),
        (keyed(ABORTED, TOMBSTONE), False),
        (keyed(TOMBSTONE._replace(number=0)), False),
        (keyed(VALUE._replace(offset=4), TOMBSTONE), False),
    ],
)
def test_what_compaction_must_keep_is_missed(found: History, *, clean: bool) -> None:
    assert names(found) == (set() if clean else {"compaction"})
