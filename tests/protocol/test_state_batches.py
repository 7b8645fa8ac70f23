"""Old and new delivery states become one list, held against a plain picture of every offset."""

from __future__ import annotations

import itertools
import random

import pytest

from barnabas.protocol.state_batches import StateBatch, combine


@pytest.mark.parametrize(
    ("batches", "start", "expected"),
    [
        ([], -1, []),
        ([(0, 9, 0, 1)], -1, [(0, 9, 0, 1)]),
        ([(0, 9, 0, 1), (10, 19, 0, 1)], -1, [(0, 19, 0, 1)]),
        ([(0, 9, 0, 1), (11, 19, 0, 1)], -1, [(0, 9, 0, 1), (11, 19, 0, 1)]),
        ([(0, 9, 0, 1), (5, 14, 0, 2)], 3, [(3, 4, 0, 1), (5, 14, 0, 2)]),
        ([(0, 9, 0, 1), (3, 5, 2, 1)], -1, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 9, 2, 1), (3, 5, 0, 1)], -1, [(0, 9, 2, 1)]),
        ([(0, 9, 3, 2), (0, 9, 4, 2)], -1, [(0, 9, 4, 2)]),
        ([(0, 9, 2, 1)], 10, []),
    ],
)
def test_examples(
    batches: list[tuple[int, int, int, int]], start: int, expected: list[tuple[int, int, int, int]]
) -> None:
    assert [tuple(batch) for batch in combine([StateBatch(*b) for b in batches], start)] == expected


@pytest.mark.parametrize("seed", range(50))
def test_at_every_offset_the_most_deliveries_and_then_the_latest_state_win(seed: int) -> None:
    rng = random.Random(seed)
    batches = []
    for _ in range(rng.randint(1, 12)):
        first = rng.randrange(40)
        batches.append(StateBatch(first, first + rng.randrange(15), rng.choice((0, 2, 4)), rng.randint(1, 3)))
    start = rng.choice((-1, 0, 10, 25))
    by_offset: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
            by_offset[offset] = max(by_offset.get(offset, (0, 0)), (batch.delivery_count, batch.delivery_state))
    combined = combine(batches, start)
    seen = {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in combined
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert seen == by_offset
    for one, following in itertools.pairwise(combined):
        assert one.last_offset < following.first_offset
        assert one.last_offset + 1 < following.first_offset or one[2:] != following[2:], "neighbours are merged"
