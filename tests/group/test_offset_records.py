"""The records of groups, byte for byte as Kafka 4.4 writes them."""

from __future__ import annotations

import pytest

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.classic.records import empty_group_metadata_record, group_metadata_record
from tests.group.classic.test_group import member, preparing

SERDE = RecordSerde("group")


def test_a_group_without_a_generation() -> None:
    key, value = SERDE.encode(empty_group_metadata_record("g", 5))
    assert key == b"\x00\x02\x00\x01g"
    assert value == (
        b"\x00\x03"  # value version
        b"\x00\x00"  # protocol type
        b"\x00\x00\x00\x00"  # generation
        b"\xff\xff"  # no protocol
        b"\xff\xff"  # no leader
        b"\x00\x00\x00\x00\x00\x00\x00\x05"  # since when it is in this state
        b"\x00\x00\x00\x00"  # members
    )


def test_a_generation() -> None:
    group = preparing(member("m", {"p": b"sub"}, group_instance_id="i", client_id="c"))
    group.init_next_generation(6)
    _, value = SERDE.encode(group_metadata_record(group, {"m": b"part"}))
    assert value == (
        b"\x00\x03"  # value version
        b"\x00\x08consumer"  # protocol type
        b"\x00\x00\x00\x01"  # generation
        b"\x00\x01p"  # protocol
        b"\x00\x01m"  # leader
        b"\x00\x00\x00\x00\x00\x00\x00\x06"  # since when
        b"\x00\x00\x00\x01"  # members
        b"\x00\x01m\x00\x01i\x00\x01c\x00\x02/h"  # member id, instance id, client id, client host
        b"\x00\x00\xea\x60\x00\x00\x27\x10"  # rebalance timeout, session timeout
        b"\x00\x00\x00\x03sub\x00\x00\x00\x04part"  # subscription, assignment
    )


def test_members_without_a_protocol_are_a_bug() -> None:
    group = ClassicGroup("g", now_ms=0)
    group.add(member("m"))
    with pytest.raises(AssertionError):
        group_metadata_record(group, {"m": b""})
