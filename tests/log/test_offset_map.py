"""OffsetMap against a dictionary, and what happens when it is full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.offset_map import ENTRY_BYTES, OffsetMap


@given(st.lists(st.binary(max_size=3), max_size=200))
def test_it_is_a_dictionary(keys: list[bytes]) -> None:
    offsets = OffsetMap(300 * ENTRY_BYTES)
    expected: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        assert offsets.put(key, offset)
        expected[key] = offset
        assert offsets.latest_offset == offset
    assert {key: offsets.get(key) for key in expected} == expected
    assert offsets.entries == len(expected)
    assert offsets.get(b"never put") == -1


def test_a_full_map_takes_known_keys_only() -> None:
    offsets = OffsetMap(10 * ENTRY_BYTES, 0.5)
    for offset in range(5):
        assert offsets.put(b"%d" % offset, offset)
    assert not offsets.put(b"more", 5)
    assert offsets.latest_offset == 4
    assert offsets.put(b"3", 6)
    assert offsets.get(b"3") == 6
    assert offsets.get(b"more") == -1
    assert offsets.utilization == 0.5


def test_all_slots_but_one_can_be_used() -> None:
    offsets = OffsetMap(64 * ENTRY_BYTES, 1.0)
    assert offsets.limit == 63
    for offset in range(63):
        assert offsets.put(b"%d" % offset, offset)
    assert [offsets.get(b"%d" % offset) for offset in range(63)] == list(range(63))
    assert offsets.get(b"never put") == -1


@pytest.mark.parametrize(("memory", "load_factor"), [(0, 0.9), (ENTRY_BYTES, 1.0), (10 * ENTRY_BYTES, 0.05)])
def test_a_map_without_room_is_refused(memory: int, load_factor: float) -> None:
    with pytest.raises(ValueError, match="holds no key"):
        OffsetMap(memory, load_factor)
