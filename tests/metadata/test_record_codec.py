"""Metadata records as bytes: Kafka's frame, and versions by metadata.version."""

from __future__ import annotations

import pytest

from barnabas.metadata.record_codec import UnknownRecord, decode_record, encode_record
from barnabas.protocol import messages
from barnabas.protocol.errors import MalformedMessage

FEATURE = (
    b"\x01"  # frame version
    b"\x0c"  # type 12, FeatureLevelRecord
    b"\x00"  # version
    b"\x11metadata.version"  # compact string
    b"\x00\x21"  # level 33
    b"\x00"  # no tags
)


def test_golden_bytes() -> None:
    record = messages.FeatureLevelRecord(name="metadata.version", feature_level=33)
    assert encode_record(record, 33) == FEATURE
    assert decode_record(FEATURE) == record


@pytest.mark.parametrize(("level", "version"), [(7, 0), (17, 1), (22, 1), (23, 2), (33, 2)])
def test_a_partition_is_written_in_the_version_of_the_finalized_level(level: int, version: int) -> None:
    assert encode_record(messages.PartitionRecord(), level)[2] == version


def test_a_later_type_or_version_or_frame_is_not_guessed_at() -> None:
    with pytest.raises(UnknownRecord):
        decode_record(b"\x01\x7f\x00\x00")
    with pytest.raises(UnknownRecord):
        decode_record(b"\x01\x0c\x09" + FEATURE[3:])
    with pytest.raises((UnknownRecord, MalformedMessage)):
        decode_record(b"\x02" + FEATURE[1:])


@pytest.mark.parametrize("cut", range(len(FEATURE)))
def test_a_cut_record_is_malformed(cut: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_record(FEATURE[:cut])
