"""The rules of KIP-966 on one partition: who leads, who is in sync, who is eligible, and what the record says of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from barnabas.metadata.directory_ids import MIGRATING
from barnabas.metadata.partition_change_builder import Election, ElectionRules, PartitionChangeBuilder
from barnabas.metadata.partition_registration import (
    LEADER_RECOVERED,
    LEADER_RECOVERING,
    NO_LEADER,
    PartitionRegistration,
)
from barnabas.protocol import messages

TOPIC_ID = b"t" * 16


def partition(leader: int, isr: str = "", elr: str = "", last: str = "", **fields: Any) -> PartitionRegistration:
    """A partition with the replicas 1, 2 and 3; lists are written as digits."""
    lists = [tuple(int(digit) for digit in digits) for digits in (isr, elr, last)]
    made = PartitionRegistration((1, 2, 3), lists[0], leader, 5, 7, elr=lists[1], last_known_elr=lists[2])
    return made._replace(**fields)


def build(
    before: PartitionRegistration,
    *,
    active: Iterable[int] = (1, 2, 3),
    min_isr: int = 1,
    elr: bool = True,
    election: Election = Election.ONLINE,
    **wanted: Any,
) -> tuple[messages.PartitionChangeRecord | None, PartitionRegistration]:
    """The record of a change, and the partition after it."""
    builder = PartitionChangeBuilder(before, ElectionRules(set(active).__contains__, min_isr, elr, election))
    for name, value in wanted.items():
        setattr(builder, name, value)
    record = builder.build(TOPIC_ID, 0)
    return record, before if record is None else before.changed_by(record)


def state(after: PartitionRegistration) -> tuple[int, str, str, str]:
    lists = ("".join(map(str, replicas)) for replicas in (after.isr, after.elr, after.last_known_elr))
    return (after.leader, *lists)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("before", "active", "min_isr", "after"),
    [
        # The leader stays while it may lead, also if another replica comes first.
        (partition(2, "123"), "123", 1, (2, "123", "", "")),
        # Another leads in the order of the replicas, not of the ISR.
        (partition(1, "132"), "23", 1, (2, "132", "", "")),
        (partition(1, "13"), "23", 1, (3, "13", "", "")),
        # From the ELR only while the ISR is empty; the leader is the ISR then, and the others stay eligible.
        (partition(-1, "", "23", "1"), "123", 2, (2, "2", "3", "")),
        (partition(-1, "", "23", "1"), "3", 2, (3, "3", "2", "")),
        # One in-sync replica is enough: from now on it acknowledges records that the others do not have.
        (partition(-1, "", "23", "1"), "123", 1, (2, "2", "", "")),
        (partition(1, "1", "23"), "23", 2, (-1, "1", "23", "")),
        # Nobody: what is known stays.
        (partition(-1, "", "23", "1"), "1", 2, (-1, "", "23", "1")),
        # The last known leader only if nobody is eligible, and only one that is named.
        (partition(-1, "", "", "2"), "123", 1, (2, "2", "", "")),
        (partition(-1, "", "", "2"), "13", 1, (-1, "", "", "2")),
        (partition(-1, "", "", "23"), "123", 1, (-1, "", "", "23")),
        (partition(-1, ""), "123", 1, (-1, "", "", "")),
        # With enough in-sync replicas nobody else is eligible.
        (partition(1, "12", "3"), "123", 2, (1, "12", "", "")),
    ],
)
def test_an_election_takes_the_safest_replica(
    before: PartitionRegistration, active: str, min_isr: int, after: tuple[int, str, str, str]
) -> None:
    _, changed = build(before, active=[int(digit) for digit in active], min_isr=min_isr)
    assert state(changed) == after


@pytest.mark.parametrize(
    ("before", "active", "after"),
    [
        (partition(2, "123"), "123", (1, "123", "", "")),
        (partition(2, "23"), "123", (2, "23", "", "")),
        (partition(2, "123"), "23", (2, "123", "", "")),
        (partition(-1, "", "13"), "123", (1, "1", "3", "")),
        (partition(-1, "", "", "3"), "123", (3, "3", "", "")),
        (partition(-1, "3"), "23", (3, "3", "", "")),
    ],
)
def test_a_preferred_election_asks_the_first_replica_first(
    before: PartitionRegistration, active: str, after: tuple[int, str, str, str]
) -> None:
    _, changed = build(before, active=[int(digit) for digit in active], min_isr=2, election=Election.PREFERRED)
    assert state(changed) == after


@pytest.mark.parametrize(
    ("before", "active", "after"),
    [
        (partition(-1, "", "3", "2"), "12", (1, "1", "", "")),
        (partition(-1, "", "3", "2"), "123", (3, "3", "", "")),
        (partition(-1, "", "", "2"), "12", (2, "2", "", "")),
        (partition(-1, "3"), "2", (2, "2", "", "")),
        (partition(-1, "3"), "", (-1, "3", "", "")),
    ],
)
def test_an_unclean_election_takes_anybody_in_the_end(
    before: PartitionRegistration, active: str, after: tuple[int, str, str, str]
) -> None:
    _, changed = build(before, active=[int(digit) for digit in active], election=Election.UNCLEAN)
    assert state(changed) == after


@pytest.mark.parametrize(
    ("before", "isr", "lost", "min_isr", "after"),
    [
        # The ISR is still large enough: who left is not needed.
        (partition(1, "123"), (2, 3), (), 2, (2, "23", "", "")),
        # It is not: who left is eligible, and so are those of before.
        (partition(2, "23"), (3,), (), 2, (3, "3", "2", "")),
        (partition(3, "3", "2"), (), (), 2, (-1, "", "23", "3")),
        (partition(1, "1"), (), (), 1, (-1, "", "1", "1")),
        # A crash: the replica is not eligible any more.
        (partition(2, "23"), (3,), (2,), 2, (3, "3", "", "")),
        (partition(1, "1"), (), (1,), 1, (-1, "", "", "1")),
        (partition(-1, "", "12", "2"), (), (1,), 2, (-1, "", "2", "2")),
        (partition(-1, "", "2", "2"), (), (2,), 2, (-1, "", "", "2")),
        # A replica that is in sync again is not eligible besides.
        (partition(3, "3", "12"), (3, 1), (), 3, (3, "31", "2", "")),
        # The partition had no leader, as a log from before this feature can have it.
        (partition(-1, "2"), (), (2,), 1, (-1, "", "", "2")),
        (partition(-1, "32"), (), (2, 3), 1, (-1, "", "", "3")),
    ],
)
def test_a_replica_that_leaves_a_small_isr_stays_eligible(
    before: PartitionRegistration,
    isr: tuple[int, ...],
    lost: tuple[int, ...],
    min_isr: int,
    after: tuple[int, str, str, str],
) -> None:
    _, changed = build(before, active=isr, min_isr=min_isr, isr=isr, lost=frozenset(lost))
    assert state(changed) == after


@pytest.mark.parametrize(
    ("before", "isr", "active", "after"),
    [
        (partition(1, "123"), (2, 3), (2, 3), (2, "23", "", "")),
        (partition(1, "1"), (), (2, 3), (-1, "1", "", "")),
        (partition(-1, "1"), (1,), (1, 2), (1, "1", "", "")),
        (partition(-1, "1", "", "2"), (1,), (2,), (-1, "1", "", "2")),
        # From a time when the feature was on.
        (partition(-1, "", "2", "2"), (), (2, 3), (2, "2", "", "2")),
        (partition(-1, "", "", "2"), (), (2, 3), (-1, "", "", "2")),
    ],
)
def test_without_the_feature_the_last_member_stays_in_the_isr(
    before: PartitionRegistration, isr: tuple[int, ...], active: tuple[int, ...], after: tuple[int, str, str, str]
) -> None:
    _, changed = build(before, active=active, elr=False, isr=isr)
    assert state(changed) == after


def test_a_leader_that_may_have_lost_records_is_recovering() -> None:
    record, after = build(partition(-1, "", "", "2"))
    assert record == messages.PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC_ID, isr=[2], leader=2, leader_recovery_state=LEADER_RECOVERING, last_known_elr=[]
    )
    again, _ = build(partition(-1, "", "", "2", leader_recovery_state=LEADER_RECOVERING))
    assert again is not None
    assert again.leader_recovery_state == -1
    clean, _ = build(partition(-1, "", "2", "2"))
    assert clean is not None
    assert clean.leader_recovery_state == -1
    assert after.changed_by(clean).leader_recovery_state == LEADER_RECOVERING != LEADER_RECOVERED


def test_a_record_names_only_what_changes() -> None:
    record, after = build(partition(1, "1"), isr=(), active=())
    assert record == messages.PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
    )
    assert (after.leader_epoch, after.partition_epoch) == (6, 8)
    assert build(after, active=()) == (None, after)
    assert build(partition(1, "123"))[0] is None


def test_a_reassignment_is_completed_when_its_target_is_in_sync() -> None:
    before = partition(1, "12", directories=(b"1", b"2", b"3"), adding_replicas=(3,), removing_replicas=(1,))
    record, after = build(before, isr=(1, 2, 3), min_isr=3)
    assert record == messages.PartitionChangeRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        isr=[2, 3],
        leader=2,
        replicas=[2, 3],
        removing_replicas=[],
        adding_replicas=[],
        directories=[b"2", b"3"],
    )
    # Nobody who is removed is eligible.
    assert state(after) == (2, "23", "", "")


@pytest.mark.parametrize(
    ("isr", "fields", "is_completed"),
    [
        ((1, 2), {"adding_replicas": (3,), "removing_replicas": (1,)}, False),
        ((1, 3), {"adding_replicas": (3,), "removing_replicas": (1,)}, False),
        ((2, 3), {"adding_replicas": (3,), "removing_replicas": (1,)}, True),
        ((1, 2, 3), {"adding_replicas": (3,)}, True),
        ((1, 2), {"adding_replicas": (3,)}, False),
        ((2, 3), {"removing_replicas": (1,)}, True),
        ((1,), {"removing_replicas": (2, 3)}, True),
        # Nobody would be left.
        ((1, 2, 3), {"removing_replicas": (1, 2, 3)}, False),
        ((1, 2, 3), {}, False),
    ],
)
def test_any_change_may_complete_a_reassignment(
    isr: tuple[int, ...], fields: dict[str, tuple[int, ...]], is_completed: bool
) -> None:
    before = partition(2 if 2 in isr else 1, "123", **fields)
    _, after = build(before, isr=isr)
    assert (before.is_reassigning and not after.is_reassigning) is is_completed
    assert (after.replicas == (1, 2, 3)) is (not is_completed or "removing_replicas" not in fields)


def test_a_new_replica_gets_the_directory_of_its_broker() -> None:
    before = partition(1, "12", directories=(b"1", b"2", b"3"))
    rules = ElectionRules((1, 2).__contains__, 1, True, default_directory=lambda broker: b"of %d" % broker)
    builder = PartitionChangeBuilder(before, rules)
    builder.replicas, builder.adding_replicas = (1, 2, 3, 4), (4,)
    record = builder.build(TOPIC_ID, 0)
    assert record is not None
    assert (record.replicas, record.adding_replicas) == ([1, 2, 3, 4], [4])
    assert record.directories == [b"1", b"2", b"3", b"of 4"]
    # A broker reports a directory; the same one again is no change.
    for directory, recorded in ((b"9", [b"1", b"9", b"3"]), (b"2", None)):
        builder = PartitionChangeBuilder(before, rules)
        builder.directories = {2: directory}
        record = builder.build(TOPIC_ID, 0)
        assert (record.directories if record else None) == recorded
    # From a time when partitions did not say it.
    unnamed = PartitionChangeBuilder(before._replace(directories=()), rules)
    unnamed.replicas, unnamed.adding_replicas = (1, 2, 3, 4), (4,)
    record = unnamed.build(TOPIC_ID, 0)
    assert record is not None
    assert record.directories == [MIGRATING, MIGRATING, MIGRATING, b"of 4"]
    older = PartitionChangeBuilder(before, rules._replace(metadata_version=16))
    older.replicas, older.adding_replicas = (1, 2, 3, 4), (4,)
    record = older.build(TOPIC_ID, 0)
    assert record is not None
    assert record.directories is None


@pytest.mark.parametrize(
    ("metadata_version", "isr", "bumped"), [(11, (1, 2), True), (11, (1, 2, 3), False), (12, (1, 2), False)]
)
def test_before_3_6_an_isr_that_shrinks_ends_the_epoch(
    metadata_version: int, isr: tuple[int, ...], bumped: bool
) -> None:
    before = partition(1, "123" if len(isr) < 3 else "12")
    builder = PartitionChangeBuilder(
        before, ElectionRules((1, 2, 3).__contains__, 1, False, metadata_version=metadata_version)
    )
    builder.isr = isr
    record = builder.build(TOPIC_ID, 0)
    assert record is not None
    assert (record.leader, before.changed_by(record).leader_epoch) == ((1, 6) if bumped else (-2, 5))


def test_a_leader_has_recovered_when_it_says_so() -> None:
    before = partition(1, "1", leader_recovery_state=LEADER_RECOVERING)
    record, after = build(before, leader_recovery_state=LEADER_RECOVERED)
    assert record == messages.PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC_ID, leader_recovery_state=LEADER_RECOVERED
    )
    assert after.leader_recovery_state == LEADER_RECOVERED


def test_a_replica_that_is_removed_ends_the_epoch() -> None:
    record, after = build(partition(2, "12"), replicas=(2, 3), isr=(2,), min_isr=1)
    assert record is not None
    assert record.leader == 2
    assert after.leader_epoch == 6
    assert build(partition(2, "12"), replicas=(3, 2, 1))[1].leader_epoch == 5


def test_no_event_leaves_a_partition_in_a_state_that_contradicts_itself() -> None:
    """All states of three replicas that two events can lead to, with every event from there."""
    start = partition(1, "123")
    events = [
        (removed, lost, active, election, min_isr)
        for removed, lost in itertools.product((0, 1, 2, 3), (False, True))
        for active in ((), (1,), (2, 3), (1, 2, 3))
        for election in (Election.ONLINE, Election.UNCLEAN)
        for min_isr in (1, 2)
    ]
    seen = {start}
    reached = [start]
    for _ in range(3):
        reached = [after for before in reached for event in events if (after := _after(before, *event)) not in seen]
        reached = list(dict.fromkeys(reached))
        seen.update(reached)
    assert len(seen) > 30
    for after in seen:
        assert (after.leader == NO_LEADER) or after.leader in after.isr, after
        assert not set(after.isr) & set(after.elr), after
        assert not (after.leader != NO_LEADER and after.last_known_elr), after
        assert after.isr or after.last_known_elr, after


def _after(
    before: PartitionRegistration,
    removed: int,
    lost: bool,
    active: tuple[int, ...],
    election: Election,
    min_isr: int,
) -> PartitionRegistration:
    usable = [replica for replica in active if replica != removed]
    # A fenced leader leaves the ISR; what does not lead here is not part of the event.
    gone = {removed} | ({before.leader} - set(usable))
    _, after = build(
        before,
        active=usable,
        min_isr=min_isr,
        election=election,
        isr=tuple(replica for replica in before.isr if replica not in gone),
        lost=frozenset((removed,) if lost else ()),
    )
    return after._replace(leader_epoch=0, partition_epoch=0, leader_recovery_state=LEADER_RECOVERED)


def test_a_builder_prints_what_it_is_about() -> None:
    builder = PartitionChangeBuilder(partition(1, "1"), ElectionRules(bool, 1, True))
    assert repr(builder).startswith("<PartitionChangeBuilder isr=(1,) elr=() of ")
