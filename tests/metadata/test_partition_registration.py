"""A partition as records describe it: there and back, and what a change leaves as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.partition_registration import (
    LEADER_RECOVERING,
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionRegistration,
)
from barnabas.protocol.messages import PartitionChangeRecord

TOPIC_ID = b"t" * 16
BROKERS = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
EPOCHS = st.integers(0, 1 << 30)
DIRECTORIES = st.lists(st.binary(min_size=16, max_size=16), max_size=4).map(tuple)

REGISTRATIONS = st.builds(
    PartitionRegistration,
    BROKERS,
    BROKERS,
    st.integers(NO_LEADER, 9),
    EPOCHS,
    EPOCHS,
    DIRECTORIES,
    BROKERS,
    BROKERS,
    BROKERS,
    BROKERS,
    st.integers(0, 1),
)

BEFORE = PartitionRegistration((1, 2, 3), (1, 2), 1, 5, 7, (b"a" * 16,) * 3, (4,), (5,), (3,), (6,), LEADER_RECOVERING)


@given(REGISTRATIONS)
def test_a_registration_comes_back_from_its_record(registration: PartitionRegistration) -> None:
    assert PartitionRegistration.from_record(registration.to_record(TOPIC_ID, 3)) == registration


def test_a_record_names_its_partition() -> None:
    record = BEFORE.to_record(TOPIC_ID, 3)
    assert (bytes(record.topic_id), record.partition_id) == (TOPIC_ID, 3)


def test_replicas_that_are_all_in_sync_share_a_tuple() -> None:
    """A broker holds hundreds of thousands of registrations, and in most of them the two are the same."""
    record = BEFORE._replace(isr=(1, 2, 3)).to_record(TOPIC_ID, 0)
    registration = PartitionRegistration.from_record(record)
    assert registration.isr is registration.replicas


@given(REGISTRATIONS)
def test_a_change_of_nothing_only_counts(registration: PartitionRegistration) -> None:
    changed = registration.changed_by(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID))
    assert changed == registration._replace(partition_epoch=registration.partition_epoch + 1)


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"replicas": [9]}, {"replicas": (9,)}),
        ({"isr": [2]}, {"isr": (2,)}),
        ({"isr": []}, {"isr": ()}),
        ({"leader": 2}, {"leader": 2, "leader_epoch": 6}),
        ({"leader": 1}, {"leader_epoch": 6}),
        ({"leader": NO_LEADER}, {"leader": -1, "leader_epoch": 6}),
        ({"leader": NO_LEADER_CHANGE}, {}),
        ({"directories": [b"b" * 16]}, {"directories": (b"b" * 16,)}),
        ({"removing_replicas": []}, {"removing_replicas": ()}),
        ({"adding_replicas": []}, {"adding_replicas": ()}),
        ({"eligible_leader_replicas": [8]}, {"elr": (8,)}),
        ({"last_known_elr": [8]}, {"last_known_elr": (8,)}),
        ({"leader_recovery_state": 0}, {"leader_recovery_state": 0}),
    ],
)
def test_a_change_leaves_what_it_does_not_name(fields: dict[str, Any], after: dict[str, Any]) -> None:
    changed = BEFORE.changed_by(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))
    assert changed == BEFORE._replace(partition_epoch=8, **after)


@pytest.mark.parametrize(
    ("removing", "adding", "is_reassigning"), [((), (), False), ((1,), (), True), ((), (1,), True), ((1,), (2,), True)]
)
def test_a_partition_is_reassigned_while_replicas_come_or_go(
    removing: tuple[int, ...], adding: tuple[int, ...], is_reassigning: bool
) -> None:
    assert BEFORE._replace(removing_replicas=removing, adding_replicas=adding).is_reassigning == is_reassigning
