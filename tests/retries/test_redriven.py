"""Which dead letters were sent back: ranges that grow together, and what a restart reads."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from barnabas.retries.record import Record
from barnabas.retries.redriven import STATE_TOPIC, Ranges, Redriven


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 10)), max_size=30))
def test_ranges_are_a_set(added: list[tuple[int, int]]) -> None:
    ranges, model = Ranges(), set()
    for first, more in added:
        ranges.add(first, first + more)
        model |= set(range(first, first + more + 1))
    assert {offset for offset in range(80) if offset in ranges} == model
    found = ranges.ranges
    assert all(first <= last for first, last in found)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found)), "apart and in order"


def test_what_was_noted_is_read_again() -> None:
    redriven = Redriven("orders.dlq", "id-1")
    redriven.add(0, 0, 4)
    redriven.add(0, 9, 9)
    redriven.add(2, 7, 7)
    notes = redriven.changes()
    assert redriven.changes() == []
    assert {note.topic for note in notes} == {STATE_TOPIC}
    again, other = Redriven("orders.dlq", "id-1"), Redriven("orders.dlq", "id-2")
    for note in notes:
        record = Record(STATE_TOPIC, 0, 0, 0, note.key, note.value)
        again.replay(record)
        other.replay(record)
    assert [offset for offset in range(12) if again.has(0, offset)] == [0, 1, 2, 3, 4, 9]
    assert again.has(2, 7)
    assert not again.has(1, 7)
    assert not other.has(0, 0), "the topic was created again"
