"""One producer's state in one log."""

from __future__ import annotations

from barnabas.log.producer_state_entry import BatchMetadata, ProducerStateEntry


def entry(*batches: BatchMetadata) -> ProducerStateEntry:
    made = ProducerStateEntry(7, 3)
    made.batches.extend(batches)
    return made


def test_a_new_producer_has_no_batches() -> None:
    made = entry()
    assert (made.producer_epoch, made.coordinator_epoch, made.last_timestamp, made.txn_first_offset) == (3, -1, -1, -1)
    assert (made.last_sequence, made.last_offset) == (-1, -1)
    assert ProducerStateEntry(7).producer_epoch == -1


def test_sequences_and_offsets_of_a_batch() -> None:
    batch = BatchMetadata(last_sequence=12, last_offset=42, offset_delta=2, timestamp=5)
    assert (batch.first_sequence, batch.first_offset) == (10, 40)
    wrapped = BatchMetadata(last_sequence=1, last_offset=42, offset_delta=3, timestamp=5)
    assert wrapped.first_sequence == 2**31 - 2


def test_only_a_batch_of_the_same_epoch_with_both_sequences_is_a_duplicate() -> None:
    made = entry(BatchMetadata(12, 42, 2, 5), BatchMetadata(14, 44, 1, 5))
    assert made.find_duplicate(3, 10, 12) == BatchMetadata(12, 42, 2, 5)
    assert made.find_duplicate(3, 13, 14) == BatchMetadata(14, 44, 1, 5)
    for epoch, first, last in ((2, 10, 12), (4, 10, 12), (3, 11, 12), (3, 10, 11), (3, 15, 16)):
        assert made.find_duplicate(epoch, first, last) is None
    assert (made.last_sequence, made.last_offset) == (14, 44)


def test_the_last_five_batches_are_kept() -> None:
    made = entry(*(BatchMetadata(number, number, 0, 5) for number in range(7)))
    assert [batch.last_offset for batch in made.batches] == [2, 3, 4, 5, 6]
