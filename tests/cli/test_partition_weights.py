"""`cluster drain` and `cluster rebalance` by bytes and by load; `tests/client/test_weighed_placement.py` has the plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unittest import mock

from click.testing import Result

from barnabas.client.admin import EARLIEST, LATEST, LogDir, OffsetAndTimestamp, ReplicaSize, TopicPartition
from barnabas.protocol.errors import ErrorCode, error_for
from tests.cli.test_cluster_moves import Cluster, run


class Sized(Cluster):
    """Partition 0 has 900 bytes, and each other one 100; 20 of its 90 records came in the last hour, and none of the others'."""

    def describe_log_dirs(self, *_: object, **__: object) -> dict[int, list[LogDir]]:
        return {
            broker: [
                LogDir(
                    "/data",
                    None,
                    [
                        ReplicaSize(where, 900 if where.partition == 0 else 100, 0, is_future)
                        for where, each in self.found.items()
                        if broker in each.replicas
                        # A copy that is on its way to another directory is not yet the replica.
                        for is_future in (False, True)
                    ],
                    -1,
                    -1,
                )
            ]
            for broker in (1, 2, 3)
        }

    def list_offsets(self, wanted: Mapping[TopicPartition, int], **_: object) -> dict[TopicPartition, Any]:
        def found(where: TopicPartition, asked: int) -> OffsetAndTimestamp:
            recent = 70 if where.partition == 0 else -1
            return OffsetAndTimestamp({EARLIEST: 0, LATEST: 90}.get(asked, recent), 0, 0)

        return {where: found(where, asked) for where, asked in wanted.items()}


def brokers_of(result: Result, column: str) -> dict[int, tuple[int, int]]:
    return {each["broker"]: (each[column], each[f"new_{column}"]) for each in json.loads(result.stdout)["brokers"]}


def test_a_rebalance_by_bytes_weighs_the_replicas() -> None:
    cluster = Sized([1], [1], [1], [1], [2], [3])
    result = run(cluster, "rebalance", "--by", "bytes")
    assert result.exit_code == 0, result.stderr
    assert 0 not in {where.partition for where in cluster.moved}
    assert brokers_of(result, "bytes") == {1: (1200, 900), 2: (100, 300), 3: (100, 200), 4: (0, 0)}


def test_a_drain_by_load_weighs_what_was_written() -> None:
    cluster = Sized([1], [1], [2], [3])
    result = run(cluster, "drain", "1", "--by", "load")
    assert result.exit_code == 0, result.stderr
    assert brokers_of(result, "bytes_last_hour")[1] == (200, 0)


def test_by_bytes_needs_the_sizes_of_every_broker() -> None:
    cluster = Sized([1])
    refused = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with mock.patch.object(cluster, "describe_log_dirs", return_value={2: refused}):
        result = run(cluster, "rebalance", "--by", "bytes")
    assert (result.exit_code, "the sizes of the logs of broker 2" in result.stderr) == (1, True)
