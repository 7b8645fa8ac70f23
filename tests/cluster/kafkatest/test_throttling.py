"""`throttling_test` of kafkatest: a throttled reassignment takes as long as its bytes take at that rate, and no more than twice as long."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.reassignments import Moves, Reassignment
from tests.cluster.load import QUICK
from tests.cluster.node_process import KINDS
from tests.cluster.records import read_partition
from tests.cluster.topics import create_topic
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(900)]

TOPIC = "throttled"
RECORD_BYTES = 100_000
RECORDS = 150
"""Of each partition."""
THROTTLE = 1_000_000
EXPECTED_SECONDS = math.ceil(RECORDS * RECORD_BYTES / THROTTLE)
MOVES: Moves = {(TOPIC, 0): [2], (TOPIC, 1): [3], (TOPIC, 2): [1]}
"""Each broker gets one partition and gives one."""


@pytest.fixture
def filled(kind: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kind, tmp_path / "nodes") as cluster:
        create_topic(cluster, TOPIC, [[1], [2], [3]])
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **QUICK})
        rng = random.Random(1)
        for number in range(3 * RECORDS):
            producer.produce(TOPIC, rng.randbytes(RECORD_BYTES), partition=number % 3)
            producer.poll(0)
        assert not producer.flush(120)
        yield cluster


@pytest.mark.parametrize("is_bounced", [False, True], ids=["", "bounced"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_moves_take_what_the_throttle_allows(
    filled: Cluster, tmp_path: Path, tools: ToolProcess, is_bounced: bool
) -> None:
    before = [read_partition(filled.bootstrap_servers, TOPIC, index) for index in range(3)]
    reassignment = Reassignment(filled, tools, tmp_path, MOVES, throttle=THROTTLE)
    reassignment.execute()
    began = time.monotonic()
    if is_bounced:
        bounce(filled, filled[1], is_clean=True)
    reassignment.await_done()
    took = time.monotonic() - began
    print(f"{took:.1f} s for {EXPECTED_SECONDS} s of bytes")
    assert took >= 0.9 * EXPECTED_SECONDS
    # A bounce, and a busy machine, take additional time.
    assert is_bounced or took <= 2 * EXPECTED_SECONDS + 10
    described = tools.run(
        "configs", "--bootstrap-server", filled.bootstrap_servers, "--describe", "--entity-type", "topics", "--entity-name", TOPIC
    )  # fmt: skip
    assert "throttled.replicas" not in described, described
    assert [read_partition(filled.bootstrap_servers, TOPIC, index) for index in range(3)] == before
