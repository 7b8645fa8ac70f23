"""The file of the producers."""

from __future__ import annotations

import pytest

from barnabas.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from barnabas.log.producer_state_entry import ProducerStateEntry
from barnabas.records.checksum import crc32c
from tests.log.test_producer_state import NOW_MS, describe, manager


def test_golden_snapshot_is_kafkas_version_1() -> None:
    entry = ProducerStateEntry(0x0102030405060708, 3)
    entry.last_timestamp = 77
    entry.coordinator_epoch = 9
    entry.txn_first_offset = 40
    made = manager()
    made.producers[entry.producer_id] = entry
    made.update(entry.producer_id, 3, 12, 40, 42, 77)
    body = (
        "00000001"  # one entry
        "0102030405060708"  # producerId
        "0003"  # producerEpoch
        "0000000c"  # lastSequence
        "000000000000002a"  # lastOffset
        "00000002"  # offsetDelta
        "000000000000004d"  # timestamp
        "00000009"  # coordinatorEpoch
        "0000000000000028"  # currentTxnFirstOffset
    )
    data = encode_snapshot(made.producers.values())
    assert data.hex() == "0001" + f"{crc32c(bytes.fromhex(body)):08x}" + body
    assert describe(decode_snapshot(data)) == describe([entry])


def test_older_batches_stand_behind_kafkas_entries() -> None:
    made = manager()
    for number in range(7):
        made.update(5, 0, number, number, number, NOW_MS)
    made.update(6, 0, 3, 7, 10, NOW_MS)
    data = encode_snapshot(made.producers.values())
    # Kafka's reader stops behind its entries: two of them here.
    assert int.from_bytes(data[6:10], "big") == 2
    assert len(data) == 10 + 2 * 46 + 4 + 4 * 32
    assert describe(decode_snapshot(data)) == describe(list(made.producers.values()))
    assert [b.last_offset for b in decode_snapshot(data)[0].batches] == [2, 3, 4, 5, 6]


def test_every_cut_and_every_changed_byte_is_noticed() -> None:
    made = manager()
    for number in range(3):
        made.update(5, 0, number, number, number, NOW_MS)
    data = encode_snapshot(made.producers.values())
    for size in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:size])
    for at in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
