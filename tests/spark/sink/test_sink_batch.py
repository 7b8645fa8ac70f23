"""What the tasks of a batch report, taken together."""

from __future__ import annotations

from barnabas.client.producer_transactions import Transaction
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch, is_two_phase, taken_over, totals, transactions_of

ONE, OTHER = Transaction("p/q/w/0", 7, 0), Transaction("p/q/v/0", 8, 1)


def test_totals_do_not_depend_on_the_order_of_tasks():
    tasks = [Prepared(ONE, 3, digest=2**64 - 1), Prepared(None, 0), Prepared(OTHER, 4, digest=5)]
    assert totals(tasks) == totals(tasks[::-1]) == (7, 4)
    assert transactions_of(tasks) == transactions_of(tasks[::-1]) == [OTHER, ONE]


def test_a_task_without_rows_has_no_timeout_either():
    assert is_two_phase([Prepared(ONE, 1, True), Prepared(None, 0)])
    assert not is_two_phase([Prepared(ONE, 1, True), Prepared(OTHER, 1, False)])


def test_a_timeout_is_a_reason_only_where_there_is_one():
    batch = SinkBatch("p/q", "q", "r", 4)
    assert "kafka.transaction.timeout.ms" in taken_over(batch, False)
    assert "kafka.transaction.timeout.ms" not in taken_over(batch, True)
