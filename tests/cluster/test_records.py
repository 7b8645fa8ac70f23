"""Which records are not where their producer was told."""

from __future__ import annotations

import pytest

from tests.cluster.records import elsewhere


@pytest.mark.parametrize(
    ("told", "moved"),
    [
        ([10, 11, 12], []),
        ([-1, 11, -1001], []),
        ([-1, 0, 1, 2, 14], []),
        ([10, -1001, -1000, 13], []),
        ([10, 12, 12], [(11, 12)]),
        ([-1, 1, 2], [(11, 1), (12, 2)]),
        ([0, 1, 2], [(10, 0), (11, 1), (12, 2)]),
        ([-1, 0, 12, 1], [(13, 1)]),
    ],
)
def test_a_batch_without_an_offset_is_not_elsewhere(told, moved):
    assert elsewhere(enumerate(told, 10)) == moved
