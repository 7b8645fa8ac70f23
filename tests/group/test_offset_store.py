"""Offsets, and those of open transactions."""

from __future__ import annotations

from barnabas.group.offset_store import OffsetAndMetadata, Offsets, OffsetStore
from barnabas.protocol.messages import LegacyOffsetCommitValue, OffsetCommitValue


def offset(value: int, record_offset: int = -1, topic_id: bytes = bytes(16)) -> OffsetAndMetadata:
    return OffsetAndMetadata(value, -1, "", 0, record_offset=record_offset, topic_id=topic_id)


def test_put_get_remove_leaves_nothing() -> None:
    offsets = Offsets()
    offsets.put("g", "t", 0, offset(1))
    offsets.put("g", "t", 1, offset(2))
    assert offsets.get("g", "t", 1) == offset(2)
    assert offsets.get("g", "u", 1) is None
    assert [key[:3] for key in offsets] == [("g", "t", 0), ("g", "t", 1)]
    offsets.remove("g", "t", 0)
    offsets.remove("g", "t", 7)
    offsets.remove("h", "t", 0)
    offsets.remove("g", "t", 1)
    assert offsets.by_group == {}


def test_transaction_commits() -> None:
    store = OffsetStore()
    store.replay("g", "t", 0, offset(1, 10), producer_id=-1)
    store.replay("g", "t", 0, offset(2, 11), producer_id=5)
    assert store.has_pending("g", "t", 0)
    assert store.has_open_transactions("g")
    assert store.offsets.get("g", "t", 0) == offset(1, 10)
    store.replay_end_transaction_marker(5, committed=True)
    assert store.offsets.get("g", "t", 0) == offset(2, 11)
    assert not store.has_open_transactions("g")


def test_transaction_aborts() -> None:
    store = OffsetStore()
    store.replay("g", "t", 0, offset(2, 11), producer_id=5)
    store.replay_end_transaction_marker(5, committed=False)
    store.replay_end_transaction_marker(6, committed=True)
    assert store.offsets.by_group == {}
    assert not store.has_pending("g", "t", 0)


def test_a_later_plain_commit_wins_over_the_transaction() -> None:
    store = OffsetStore()
    store.replay("g", "t", 0, offset(2, 11), producer_id=5)
    store.replay("g", "t", 0, offset(3, 12), producer_id=-1)
    store.replay_end_transaction_marker(5, committed=True)
    assert store.offsets.get("g", "t", 0) == offset(3, 12)


def test_a_tombstone_takes_pending_offsets_too() -> None:
    store = OffsetStore()
    store.replay("g", "t", 0, offset(1, 10), producer_id=-1)
    store.replay("g", "t", 0, offset(2, 11), producer_id=5)
    store.replay_tombstone("g", "t", 0)
    store.replay_end_transaction_marker(5, committed=True)
    assert store.offsets.by_group == {}


def test_topic_ids() -> None:
    one, two, none = b"1" * 16, b"2" * 16, bytes(16)
    assert offset(1, topic_id=one).is_of_topic(one)
    assert offset(1, topic_id=one).is_of_topic(none)
    assert offset(1, topic_id=none).is_of_topic(two)
    assert not offset(1, topic_id=one).is_of_topic(two)


def test_an_open_transaction_of_another_producer_stays_open() -> None:
    store = OffsetStore()
    store.replay("g", "t", 0, offset(1, 10), producer_id=0)
    store.replay("g", "t", 0, offset(2, 11), producer_id=6)
    store.replay_end_transaction_marker(0, committed=True)
    assert store.offsets.get("g", "t", 0) == offset(1, 10)
    assert store.has_pending("g", "t", 0)
    assert not store.has_pending("g", "t", 1)
    assert not store.has_open_transactions("h")
    store.replay_end_transaction_marker(6, committed=True)
    assert store.offsets.get("g", "t", 0) == offset(2, 11)
    assert store.pending == {}


def test_a_tombstone_leaves_other_partitions_of_the_transaction() -> None:
    store = OffsetStore()
    for partition in (0, 1):
        store.replay("g", "t", partition, offset(2, 11 + partition), producer_id=5)
    store.replay_tombstone("g", "t", 0)
    assert not store.has_pending("g", "t", 0)
    assert store.has_open_transactions("g")
    store.replay_end_transaction_marker(5, committed=True)
    assert [key[:3] for key in store.offsets] == [("g", "t", 1)]


def test_removal_leaves_other_topics_and_groups() -> None:
    offsets = Offsets()
    for group_id, topic in (("g", "t"), ("g", "u"), ("h", "t")):
        offsets.put(group_id, topic, 0, offset(1))
    offsets.remove("g", "t", 0)
    assert [key[:3] for key in offsets] == [("g", "u", 0), ("h", "t", 0)]
    assert "t" not in offsets.by_group["g"], "a topic without offsets has no entry"


def test_an_offset_keeps_what_its_record_says() -> None:
    value = OffsetCommitValue(
        offset=4, leader_epoch=3, metadata="m", commit_timestamp=9, expire_timestamp=12, topic_id=b"1" * 16
    )
    assert OffsetAndMetadata.from_record(7, value) == OffsetAndMetadata(4, 3, "m", 9, 12, b"1" * 16, 7)
    value.expire_timestamp = -1
    assert OffsetAndMetadata.from_record(7, value).expire_timestamp_ms is None
    legacy = LegacyOffsetCommitValue(offset=4, metadata="m", commit_timestamp=9)
    assert OffsetAndMetadata.from_legacy_record(7, legacy) == OffsetAndMetadata(4, -1, "m", 9, record_offset=7)


def test_a_new_offset_has_no_expiry_no_topic_id_and_no_record() -> None:
    assert OffsetAndMetadata(1, 2, "", 3) == (1, 2, "", 3, None, bytes(16), -1)
