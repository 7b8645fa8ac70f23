"""What is seen of a cluster, in sums."""

from __future__ import annotations

from tests.adopt.sights import KAFKA, OURS, node, seen


def test_sums() -> None:
    found = seen(KAFKA, OURS, KAFKA, behind=3)
    assert (found.running(KAFKA), found.running(OURS), found.behind) == ([1, 3], [2], 3)
    assert [each.id for each in found.voters] == [1, 2, 3]
    assert seen(KAFKA, OURS, voter_lag=None).voters == [node(1, KAFKA)]


def test_who_has_just_had_everything_is_caught_up() -> None:
    assert node(1, KAFKA, voter_lag=0, caught_up_ago_ms=None).is_caught_up(0)
    assert node(1, KAFKA, voter_lag=5, caught_up_ago_ms=900).is_caught_up(1000)
    assert not node(1, KAFKA, voter_lag=5, caught_up_ago_ms=1100).is_caught_up(1000)
    assert not node(1, KAFKA, voter_lag=5, caught_up_ago_ms=None).is_caught_up(1000)
    assert node(1, KAFKA, voter_lag=None, caught_up_ago_ms=None).is_caught_up(0)
