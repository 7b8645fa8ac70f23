"""Whatever a cluster that is not quite there answers, a task reads every record of its range, or fails: it never skips.

The log is whole in all of these runs. So nothing is lost, and a task must not say that something is, nor end without the
records, whatever `failOnDataLoss` says.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.errors import ConnectionLost
from barnabas.protocol.errors import ErrorCode
from barnabas.spark.source.fetcher import NoProgress, RangeFetcher
from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.options import parse_batch_options
from barnabas.spark.source.ranges import OffsetRange
from tests.spark.fake_cluster import PORT, FakeCluster, FakePartition

DISTURBANCES = (
    "nothing",
    "high watermark lags",
    "open transaction",
    "election",
    "wrong leader",
    "deposed leader",
    "unknown id",
    "inconsistent id",
    "server error",
    "disconnect",
    "broker down",
    "topic not in metadata",
    "older topic in metadata",
    "other topic gone",
)
END = 20


class Troubled:
    """A cluster that one disturbance after another befalls, one for each request."""

    def __init__(self, disturbances: list[str], level: int) -> None:
        self.cluster = FakeCluster(brokers=2)
        self.topic = self.cluster.create("t", incarnation=2)
        self.cluster.create("u")
        self.partition = self.topic.partitions[0]
        self.partition.leader_epoch = 3
        self.partition.batches_per_fetch = 2
        for i in range(END // 2):
            self.partition.append(b"a%d" % i, b"b%d" % i)
        self.left = iter(disturbances)
        self.now = "nothing"
        self.level = level
        self.answer_fetch = self.cluster.fetch_partition
        self.cluster.before = self.disturb
        self.cluster.fetch_partition = self.fetch  # type: ignore[method-assign]

    def disturb(self, name: str) -> None:
        self.cluster.topics["t"] = self.topic
        self.cluster.down = set()
        self.now = next(self.left, "nothing")
        if self.now == "election":
            self.partition.leader = 1 - self.partition.leader
            self.partition.leader_epoch += 1
        elif self.now == "disconnect":
            raise ConnectionLost("broken")
        elif self.now == "broker down":
            self.cluster.down = {self.partition.leader}
        elif self.now == "topic not in metadata" and name == "Metadata":
            del self.cluster.topics["t"]
        elif self.now == "older topic in metadata" and name == "Metadata":
            self.cluster.create("t", incarnation=1)
        elif self.now == "other topic gone":
            self.cluster.topics.pop("u", None)

    def fetch(self, p: FakePartition, offset: int, request: Any, node: int, data: Any) -> None:
        codes = {
            "wrong leader": ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "unknown id": ErrorCode.UNKNOWN_TOPIC_ID,
            "inconsistent id": ErrorCode.INCONSISTENT_TOPIC_ID,
            "server error": ErrorCode.UNKNOWN_SERVER_ERROR,
            # It rejects the epoch of its successor, whatever the offset is.
            "deposed leader": ErrorCode.UNKNOWN_LEADER_EPOCH,
        }
        data.error_code = codes.get(self.now, 0)
        if data.error_code:
            return
        self.answer_fetch(p, offset, request, node, data)
        if self.now == "high watermark lags":
            data.high_watermark = data.last_stable_offset = min(self.level, data.high_watermark)
        elif self.now == "open transaction":
            data.last_stable_offset = min(self.level, data.high_watermark)
        else:
            return
        if offset >= self.level:
            data.records = b""


@pytest.mark.parametrize("fail", ["true", "false"])
@given(
    disturbances=st.lists(st.sampled_from(DISTURBANCES), max_size=40),
    start=st.integers(0, END - 1),
    level=st.integers(0, END),
    patience_ms=st.sampled_from([500, 2_000, 120_000]),
    fetch_version=st.sampled_from([12, 17]),
    isolation=st.sampled_from(["read_committed", "read_uncommitted"]),
)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_never_fewer_rows_than_the_log_holds(fail, disturbances, start, level, patience_ms, fetch_version, isolation):
    troubled = Troubled(disturbances, level)
    cluster = troubled.cluster
    cluster.fetch_version = fetch_version
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    options = parse_batch_options(
        {
            "kafka.bootstrap.servers": "h:9092,h:9093",
            "subscribe": "t,u",
            "failOnDataLoss": fail,
            "kafka.isolation.level": isolation,
            "kafkaConsumer.pollTimeoutMs": str(patience_ms),
        },
        0,
    )
    fetcher = RangeFetcher(
        options,
        OffsetRange("t", 0, start, END),
        Leader(troubled.topic.topic_id, "h", PORT, epoch=3),
        connect=cluster.connect,
        offset_reader=lambda o: OffsetReader(o, connect=cluster.connect, clock=lambda: now[0], sleep=sleep),
        clock=lambda: now[0],
        sleep=sleep,
    )
    found: list[int] = []
    try:
        for rows in fetcher:
            found += rows["offset"].to_pylist()
    except NoProgress:
        assert patience_ms < 120_000, "every disturbance passes within two minutes"
        assert found == list(range(start, start + len(found)))
    else:
        assert found == list(range(start, END))
