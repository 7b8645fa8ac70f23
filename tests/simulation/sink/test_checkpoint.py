"""A checkpoint that gets older, and is restored."""

from __future__ import annotations

from tests.simulation.sink.checkpoint import Checkpoint


def written(batches: int) -> Checkpoint:
    found = Checkpoint()
    for batch in range(batches):
        assert found.plan(batch, range(10 * batch, 10 * batch + 10))
        assert found.finish(batch)
    return found


def test_a_batch_that_is_planned_and_not_done_is_repeated():
    checkpoint = written(2)
    assert checkpoint.next_batch() == (2, None)
    checkpoint.plan(2, range(20, 23))
    assert checkpoint.next_batch() == (2, range(20, 23))
    assert checkpoint.end == 23


def test_both_logs_take_a_batch_once():
    checkpoint = written(1)
    assert not checkpoint.plan(0, range(5))
    assert not checkpoint.finish(0)


def test_without_its_newest_batch_it_repeats_or_plans_it_again():
    for plans, expected in ((False, (2, range(20, 30))), (True, (2, None))):
        checkpoint = written(3)
        assert checkpoint.lose(1, plans=plans)
        assert checkpoint.is_old
        assert checkpoint.next_batch() == expected
        assert not checkpoint.lose(1, plans=plans), "it is old already"


def test_what_was_lost_comes_back_beside_what_is_new():
    checkpoint = written(3)
    checkpoint.lose(1, plans=True)
    checkpoint.plan(2, range(20, 22))
    assert checkpoint.restore()
    assert checkpoint.next_batch() == (3, None)
    assert checkpoint.planned[2] == range(20, 30)
    assert not checkpoint.is_old


def test_it_is_not_old_any_more_when_it_has_repeated_all():
    checkpoint = written(3)
    checkpoint.lose(1, plans=False)
    checkpoint.finish(2)
    assert not checkpoint.is_old
