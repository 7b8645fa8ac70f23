"""The rows of partitions."""

from __future__ import annotations

from pathlib import Path

from tests.metrics.monitored import Monitored, value
from tests.replication.hosting import batch


def test_a_restarted_node_shows_logs_that_were_not_opened_yet(tmp_path: Path) -> None:
    node = Monitored(tmp_path)
    node.create_topic("t", 2)
    node.produce("t", b"a", b"b", timestamp=node.now_ms)
    node.close()
    node = Monitored(tmp_path)
    samples = node.samples()
    assert value(samples, "kafka_topic_partition_current_offset", topic="t", partition="0") == 2
    assert value(samples, "kafka_topic_partition_current_offset", topic="t", partition="1") == 0
    assert value(samples, "kafka_log_log_size", topic="t", partition="0") == len(batch(b"a", b"b"))
    node.close()
