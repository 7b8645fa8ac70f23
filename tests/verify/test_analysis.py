"""What an analysis derives from a history: orders, writers, readers."""

from __future__ import annotations

from barnabas.verify.analysis import Analysis
from tests.verify.stories import history


def test_the_order_of_a_key_is_that_of_its_offsets() -> None:
    found = Analysis(history("p0 ok send s0:5@9", "p0 ok send s0:4@3", "p1 ok poll r0:7@5"))
    assert found.order == {0: [4, 7, 5]}
    assert found.position == {0: {4: 0, 7: 1, 5: 2}}
    assert (found.distance(0, 4, 5), found.distance(0, 5, 4), found.distance(0, 4, 99)) == (2, -2, None)


def test_an_unknown_send_counts_once_something_of_it_was_read() -> None:
    unread = Analysis(history("p0 info txn s0:1@0 s1:2@0"))
    assert not unread.must_have_committed(unread.completions[0])
    assert unread.claims == {}
    read = Analysis(history("p0 info txn s0:1@0 s1:2@0", "p1 ok poll r1:2@0"))
    assert read.must_have_committed(read.completions[0])
    assert read.order == {0: [1], 1: [2]}


def test_an_aborted_send_claims_no_offset_but_a_read_of_it_does() -> None:
    found = Analysis(history("p0 fail txn s0:1@0", "p1 fail poll r0:1@0"))
    assert found.claims == {0: {0: {1}}}
    assert not found.must_have_committed(found.completions[0])


def test_two_values_at_one_offset_are_both_claimed() -> None:
    found = Analysis(history("p0 ok send s0:1@0", "p1 ok poll r0:2@0"))
    assert found.claims == {0: {0: {1, 2}}}


def test_a_key_is_finally_read_even_if_it_is_empty() -> None:
    found = Analysis(history("final r0:1@0,2@1", "final 1"))
    assert found.final_reads == {0: {1, 2}, 1: set()}


def test_processes_have_their_operations_in_order_without_final_reads() -> None:
    found = Analysis(history("p0 ok poll", "p1 ok poll", "p0 ok send s0:1", "final 0"))
    assert [[op.f for op in ops] for ops in found.by_process()] == [["poll", "send"], ["poll"]]
