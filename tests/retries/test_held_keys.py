"""A key's records are tried in their order, whatever fails, and every record is tried."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.retries.held_keys import HeldKeys
from barnabas.retries.record import Record

RETRIES = 3


def record(offset: int, key: bytes | None = b"k", partition: int = 0) -> Record:
    return Record("orders", partition, offset, 0, key, b"")


def test_a_record_waits_for_the_first_of_its_key() -> None:
    held = HeldKeys()
    held.put(record(5), 2)
    held.put(record(7), 1)
    assert held.waits_for(record(9)) == 2
    assert held.waits_for(record(7)) == 2
    assert held.waits_for(record(5)) == 0
    assert held.waits_for(record(9, b"other")) == held.waits_for(record(9, partition=1)) == 0
    held.put(record(5), 0)
    assert held.waits_for(record(9)) == 1
    held.put(record(7), 0)
    assert repr(held) == "<HeldKeys keys=0 records=0>"


def test_records_without_a_key_wait_for_nothing() -> None:
    held = HeldKeys()
    held.put(record(1, None), 1)
    assert held.waits_for(record(2, None)) == 0


def test_partitions_that_are_given_away() -> None:
    held = HeldKeys()
    held.put(record(1), 1)
    held.clear()
    assert held.waits_for(record(2)) == 0


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, RETRIES + 1)), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_of_every_key(orders: list[tuple[bytes, int]], random: object) -> None:
    """The topics as queues, read in any interleaving; a number says how often a record fails."""
    held = HeldKeys()
    topics: list[deque[tuple[Record, int]]] = [deque() for _ in range(RETRIES + 1)]
    topics[0].extend((record(offset, key), 0) for offset, (key, _) in enumerate(orders))
    done: list[Record] = []
    tried: list[Record] = []
    for _ in range(10_000):
        choices = [number for number, topic in enumerate(topics) if topic]
        if not choices:
            break
        found, attempts = topics[random.choice(choices)].popleft()  # type: ignore[attr-defined]
        if waits := held.waits_for(found):
            held.put(found, waits)
            topics[waits].append((found, attempts))
            continue
        tried.append(found)
        attempts += 1
        retry = attempts if attempts <= min(orders[found.offset][1], RETRIES) else 0
        held.put(found, retry)
        if retry:
            topics[retry].append((found, attempts))
        else:
            done.append(found)
    assert len(done) == len(orders)
    for key in (b"a", b"b"):
        offsets = [each.offset for each in tried if each.key == key]
        assert offsets == sorted(offsets)
