"""A Produce request that waits keeps its records and its place."""

from __future__ import annotations

from barnabas.api.serving.held_order import hold_order
from tests.api import test_produce
from tests.replication.hosting import Hosting, batch


def test_the_records_are_copied_once(hosting: Hosting) -> None:
    context = hosting.context(0, 9)
    buffer = bytearray(batch(b"a"))
    request = test_produce.request(("t", 0, memoryview(buffer)), ("t", 1, None))
    hold_order(context, request)
    buffer[:] = bytes(len(buffer))
    kept, none = request.topic_data[0].partition_data
    assert (kept.records, none.records) == (batch(b"a"), None)
    assert context.holds_order
    copy = kept.records
    hold_order(context, request)
    assert kept.records is copy
