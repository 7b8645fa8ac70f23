"""The checkers of what only some worlds have find what they look for, and a seed of each runs clean."""

from __future__ import annotations

import asyncio
import random
from math import inf as INFINITE
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import (
    DescribeShareGroupOffsetsResponse,
    ListOffsetsResponse,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from barnabas.records.builder import build_batch
from barnabas.simulation.world import World
from tests.simulation import checkers
from tests.simulation.cluster import run
from tests.simulation.cluster_client import NobodyToAsk
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.final_reading import FinalReading
from tests.simulation.history import History, Partition, TimeLookup
from tests.simulation.owner import Owner
from tests.simulation.share_drain import ShareDrain
from tests.simulation.share_history import Hold, Leader, Record, ShareHistory
from tests.simulation.share_member import ShareReader
from tests.simulation.topic_operation import Kind, Outcome, TopicOperation

pytestmark = pytest.mark.usefixtures("quiet")

P = Partition("t", 0)
LEADER: Leader = (("127.0.0.1", 9092), 3)
SEEDS = (32, 54, 63, 43, 80)
"""Clients that create and delete one topic while a voter crashes; a producer with several requests in flight; a share group; three
directories, of which one fails, in the second of these worlds while its replica fetches."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_run_clean(seed: int) -> None:
    assert run(seed).violations == {}


def test_ordinary_seeds_have_each_workload() -> None:
    plans = [ClusterPlan.draw(seed) for seed in range(100)]
    assert sum(plan.share_members > 0 for plan in plans) >= 5
    assert sum(plan.registrars > 0 for plan in plans) >= 5
    assert sum(plan.wide_partitions > 0 for plan in plans) >= 5
    assert sum(plan.has_racks for plan in plans) >= 5
    assert sum(plan.has_directories for plan in [ClusterPlan.draw(seed) for seed in range(200)]) >= 5


def names(found: History) -> set[str]:
    return {name for name, check in checkers.ALL.items() if check(found)}


def hold(
    member: str, since: float, until: float, *, is_held_at: float = 9.0, leader: Leader | None = LEADER, count: int = 1
) -> Hold:
    return Hold(member, P, 5, count, leader, since - 0.1, since, until, is_held_at)


@pytest.mark.parametrize(
    ("first", "second", "clean"),
    [
        (hold("a", 1.0, 3.0), hold("b", 3.0, 5.0), True),
        (hold("a", 1.0, 3.0), hold("b", 2.0, 5.0), False),
        (hold("a", 1.0, 3.0), hold("a", 2.0, 5.0), False),
        (hold("a", 1.0, 3.0, is_held_at=1.5), hold("b", 2.0, 5.0), True),
        (hold("a", 1.0, 3.0), hold("b", 2.0, 5.0, leader=(LEADER[0], 4)), True),
        (hold("a", 1.0, 3.0), hold("b", 2.0, 5.0, leader=None), True),
        (hold("a", 1.0, 3.0), hold("b", 3.0, 5.0, count=6), False),
    ],
)
def test_a_record_that_two_members_hold_is_found(first: Hold, second: Hold, clean: bool) -> None:
    shared = ShareHistory(holds=[first, second])
    assert names(History(shared=shared)) == (set() if clean else {"shared_records"})


@pytest.mark.parametrize(("since", "leader", "clean"), [(2.5, LEADER, False), (2.5, None, True), (2.0, LEADER, True)])
def test_a_finished_record_that_is_delivered_is_found(since: float, leader: Leader | None, clean: bool) -> None:
    shared = ShareHistory(holds=[hold("b", since, 5.0, leader=leader)], finished={Record(P, 5): 2.0})
    assert names(History(shared=shared)) == (set() if clean else {"shared_records"})


@pytest.mark.parametrize(
    ("count", "lost", "is_asked", "clean"),
    [(5, 0, False, True), (4, 1, False, True), (1, 0, True, True), (4, 0, False, False)],
)
def test_a_record_that_nobody_finishes_is_found(count: int, lost: int, is_asked: bool, clean: bool) -> None:
    shared = ShareHistory(holds=[hold("a", 1.0, 3.0, count=count)], drained={P: None})
    shared.lost_answers[P] = lost
    if is_asked:
        shared.asked_to_finish[Record(P, 5)] = None
    found = checkers.ALL["shared_records"](History(shared=shared, final_logs={P: [(5, b"x")]}))
    assert (not found) == clean


class Delivers:
    """A cluster whose leader delivers two records."""

    async def find(self, partition: Partition) -> tuple[Any, bytes]:
        return LEADER[0], b"i" * 16

    async def request_of(self, *asked: Any) -> ShareFetchResponse:
        of = ShareFetchResponse
        acquired = of.AcquiredRecords(first_offset=0, last_offset=1, delivery_count=1)
        records = bytes(build_batch([(0, None, b"a", []), (0, None, b"b", [])]))
        data = of.PartitionData(partition_index=0, records=records, acquired_records=[acquired])
        return of(responses=[of.ShareFetchableTopicResponse(topic_id=b"i" * 16, partitions=[data])])


@pytest.mark.parametrize(("bounds", "seen"), [({}, {0: b"a", 1: b"b"}), ({P: (0, 1)}, {0: b"a"})])
def test_a_record_behind_the_end_of_the_last_reading_is_not_called_seen(
    bounds: dict[Partition, tuple[int, int]], seen: dict[int, bytes]
) -> None:
    """Seed 77 of three nodes: the last request of a producer that had ended was appended after the log was read."""
    history = History(final_bounds=bounds)
    client: Any = Delivers()
    asyncio.run(ShareReader(history, random.Random(0), lambda _: LEADER).fetch(client, P, wait_ms=0))
    assert history.seen[P] == seen


class LateToKnow:
    """A cluster one of whose brokers does not know a topic when it is asked first; the log is empty."""

    def __init__(self, later: int) -> None:
        self.left = later

    async def request(self, *asked: Any) -> ListOffsetsResponse:
        if self.left:
            self.left -= 1
            await asyncio.sleep(1.0)
            raise NobodyToAsk("t-0 has no leader")
        of = ListOffsetsResponse
        found = of.ListOffsetsPartitionResponse(partition_index=0, offset=0)
        return of(topics=[of.ListOffsetsTopicResponse(name="t", partitions=[found])])


def test_the_last_reading_waits_for_a_broker_that_does_not_know_a_topic_yet() -> None:
    """Seed 8002541 of three nodes: the last creation was committed, and one of two brokers had heard of it."""
    late: Any = LateToKnow(2)
    history = History(final_topics={"t"})
    World(1).play(FinalReading(late, history).read_recreated(P))
    assert history.final_recreated == []
    never: Any = LateToKnow(100)
    with pytest.raises(NobodyToAsk):
        World(1).play(FinalReading(never, History(final_topics={"t"})).read_recreated(P))


@pytest.mark.parametrize(("until", "leases"), [(3.0, 1), (0.5, 0)])
def test_an_answer_that_comes_after_the_session_begins_no_lease(until: float, leases: int) -> None:
    """Seed 8010968 of three nodes: the answer to a heartbeat took longer than the session, and another member owned the partition."""
    history = History()
    owner = Owner("c0", "g", history, random.Random(0), lambda _: None)

    async def hears_after_a_second() -> None:
        owner.follow([("x", 0)])
        await asyncio.sleep(1.0)
        owner.prolong(until)

    World(1).play(hears_after_a_second())
    assert len(history.leases) == leases


class HeldAtFirst(Delivers):
    """A cluster that has removed two records of four, which the group's state does not say yet; another member's locks hold the others."""

    def __init__(self, lag: int) -> None:
        self.lag, self.looks = lag, 0

    async def request(self, *asked: Any) -> DescribeShareGroupOffsetsResponse:
        self.looks += 1
        of = DescribeShareGroupOffsetsResponse
        found = of.DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=0, lag=self.lag)
        topic = of.DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=[found])
        return of(groups=[of.DescribeShareGroupOffsetsResponseGroup(group_id="shared", topics=[topic])])

    async def request_of(self, partition: Partition, key: ApiKey, *asked: Any) -> Any:
        if key == ApiKey.SHARE_ACKNOWLEDGE:
            return ShareAcknowledgeResponse()
        if self.looks < 2:  # The locks hold: there is nothing to acquire.
            return ShareFetchResponse()
        self.looks = 0
        of = ShareFetchResponse
        acquired = of.AcquiredRecords(first_offset=2, last_offset=3, delivery_count=2)
        data = of.PartitionData(partition_index=0, acquired_records=[acquired])
        return of(responses=[of.ShareFetchableTopicResponse(topic_id=b"i" * 16, partitions=[data])])


def test_the_drain_waits_for_records_that_another_member_holds() -> None:
    """Seed 8000150 of three nodes: the lag was no more than the records below the log start, and those above it were held."""
    history = History(final_bounds={P: (2, 4)}, final_logs={P: [(2, b"c"), (3, b"d")]})
    client: Any = HeldAtFirst(lag=2)
    asyncio.run(ShareDrain(client, history, random.Random(0), lambda _: LEADER).read([P]))
    assert set(history.shared.asked_to_finish) == {Record(P, 2), Record(P, 3)}
    assert set(history.shared.drained) == {P}


A, B = b"aaaa", b"bbbb"


def asked(
    kind: Kind, began: float, ended: float, topic_id: bytes | None = None, *, refused: bool = False
) -> TopicOperation:
    outcome = Outcome.UNKNOWN if ended == INFINITE else Outcome.REFUSED if refused else Outcome.DONE
    return TopicOperation("c", kind, began, ended, outcome, topic_id)


CREATED, DELETED = asked(Kind.CREATE, 1, 2, A), asked(Kind.DELETE, 3, 4, A)


@pytest.mark.parametrize(
    ("operations", "clean"),
    [
        ([CREATED, DELETED, asked(Kind.CREATE, 5, 6, B), asked(Kind.READ, 7, 8, B)], True),
        ([CREATED, asked(Kind.CREATE, 3, 4, B)], False),
        ([CREATED, asked(Kind.CREATE, 3, 4, B), asked(Kind.DELETE, 1.5, 3.5, A)], True),
        ([CREATED, asked(Kind.CREATE, 3, 4, B), asked(Kind.DELETE, 1.5, INFINITE, A)], True),
        ([CREATED, asked(Kind.CREATE, 3, 4, B), asked(Kind.DELETE, 5, INFINITE, A)], False),
        ([CREATED, DELETED, asked(Kind.READ, 7, 8, A)], False),
        ([CREATED, asked(Kind.DELETE, 3, 4, A, refused=True), asked(Kind.READ, 7, 8, None)], True),
        ([CREATED, asked(Kind.CREATE, 3, 4, refused=True), asked(Kind.READ, 7, 8, A)], True),
        ([CREATED, DELETED, asked(Kind.CREATE, 5, 6, refused=True), asked(Kind.CREATE, 7, 8, B)], False),
        ([CREATED, DELETED, asked(Kind.CREATE, 5, INFINITE), asked(Kind.READ, 7, 8, B)], True),
        ([CREATED, asked(Kind.LOOK, 3, 4, A)], True),
        ([CREATED, asked(Kind.LOOK, 0.1, 0.5, A)], False),
        ([CREATED, DELETED, asked(Kind.LOOK, 5, 6, A)], True),
    ],
)
def test_answers_about_a_topic_that_no_order_explains_are_found(operations: list[TopicOperation], clean: bool) -> None:
    assert names(History(topic_operations=operations)) == (set() if clean else {"linear_topics"})


@pytest.mark.parametrize(
    ("offset", "said", "known_end", "clean"),
    [(1, 20, 3, True), (2, 30, 3, False), (1, 10, 3, False), (-1, -1, 1, True), (-1, -1, 2, False)],
)
def test_an_offset_by_time_that_is_not_the_first_is_found(offset: int, said: int, known_end: int, clean: bool) -> None:
    found = History(stamps={P: {0: 10, 1: 20, 2: 30}}, lookups=[TimeLookup(P, 15, known_end, offset, said)])
    assert names(found) == (set() if clean else {"offsets_by_time"})


def test_what_a_follower_shows_too_early_is_found() -> None:
    assert names(History(shown_early=["a follower showed offset 5"])) == {"steady_reading"}


def test_what_does_not_follow_a_failed_directory_is_found() -> None:
    assert names(History(failed_directories=["10 s later node 1 leads t-0"])) == {"failed_directories"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "checker"),
    [
        ("hide_failed_directories", "failed_directories"),
        ("keep_failed_directories_in_sync", "failed_directories"),
        ("stop_for_any_directory", "recovery"),
    ],
)
def test_a_bug_of_failed_directories_is_caught_by_this_seed(bug: str, checker: str) -> None:
    assert checker in run(157, bug).violations


@pytest.mark.slow
def test_an_empty_directory_that_is_trusted_is_caught_by_this_seed() -> None:
    assert "durability" in run(352, "trust_an_empty_directory").violations
