"""The offsets that a range means in each partition, on a real broker."""

from __future__ import annotations

import pytest

import barnabas
from barnabas.cli.failure import Failure
from barnabas.cli.offset_grammar import Span, parse_offsets
from barnabas.cli.spans import partition_counts, spans_of
from barnabas.client.admin import Admin, NewTopic, TopicPartition
from barnabas.client.offsets import READ_COMMITTED
from barnabas.client.partition_records import append_batch
from barnabas.protocol.errors import KafkaError
from barnabas.records.builder import build_batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_range_is_resolved_in_each_partition() -> None:
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 2, 1)])
        for where, times in ((T0, (1000, 2000, 3000)), (T1, (1000,))):
            for timestamp in times:
                append_batch(admin.cluster, where, build_batch([(timestamp, None, b"v", ())]))

        def spans(text: str, *chosen: int) -> dict[TopicPartition, Span]:
            return spans_of(admin, ["t"], list(chosen), parse_offsets((text,), 0), READ_COMMITTED)

        assert spans("start") == {T0: Span(0, None, 3), T1: Span(0, None, 1)}
        assert spans("-2:end") == {T0: Span(1, 3, 3), T1: Span(0, 1, 1)}
        assert spans("s@2000") == {T0: Span(1, None, 3), T1: Span(1, None, 1)}, (
            "all of t-1 is older: it begins at the end"
        )
        assert spans("1:2", 0) == {T0: Span(1, 2, 3)}
        with pytest.raises(Failure, match="topic t has no partition 2"):
            spans("start", 2)
        assert partition_counts(admin, ["t"]) == {"t": 2}
        with pytest.raises(KafkaError, match="topic u does not exist"):
            partition_counts(admin, ["u"])
