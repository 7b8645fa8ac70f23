"""The record that ends a group: what compaction keeps of it, and what a reader of the log makes of it."""

from __future__ import annotations

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.group.classic.tombstone import GROUP_METADATA, group_metadata_tombstone
from barnabas.protocol.messages import GroupMetadataKey


def test_the_end_of_a_group_has_the_key_of_its_metadata_and_no_value() -> None:
    key, value = RecordSerde("group").encode(group_metadata_tombstone("g"))
    # The type GROUP_METADATA, and the name with its length in front: compaction keeps the newest record of these bytes.
    assert bytes(key) == b"\x00\x02\x00\x01g"
    assert value is None
    assert GROUP_METADATA == 2


def test_the_end_of_a_group_is_read_back() -> None:
    serde = RecordSerde("group")
    key, value = serde.encode(group_metadata_tombstone("a name that tells"))
    read = serde.decode(key, value)
    assert (read.key, read.value) == (GroupMetadataKey(group="a name that tells"), None)
