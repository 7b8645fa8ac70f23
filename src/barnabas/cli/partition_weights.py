"""The weights that `cluster drain` and `rebalance` even out: one for each replica, its bytes, or the bytes written to it.

Both weights come from requests that Apache Kafka answers too. The load of a partition is the bytes that its records of the last hour
have, by their timestamps and the mean size of a record of the partition. No request tells what consumers read, so reads are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import click

from barnabas.cli.failure import failure_of
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.topic_sizes import first_since
from barnabas.client.admin import Admin, PartitionDescription, TopicPartition
from barnabas.client.placement import Weights
from barnabas.protocol.errors import KafkaError

LOAD_WINDOW_MS = 3_600_000


class Weighed(NamedTuple):
    """The weights of replicas.

    Attributes:
        column: of tables: the sum of a broker's replicas.
        has_leader_weights: whether leaders too are evened out by it.
    """

    column: str
    weights: Weights
    has_leader_weights: bool


def by_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--by`; the command gets it as `by`."""
    return click.option(
        "--by",
        type=click.Choice(("replicas", "bytes", "load")),
        default="replicas",
        show_default=True,
        help="Even out the number of replicas, their bytes on disk, or the bytes written to them in the last hour.",
    )(command)


def weighed(
    admin: Admin, by: str, partitions: Mapping[TopicPartition, PartitionDescription], now_ms: int | None = None
) -> Weighed | None:
    """Return the weights of partitions' replicas; None if replicas are only counted.

    Args:
        by: `replicas`, `bytes` or `load`.
        now_ms: the end of the hour; None for this moment.

    Raises:
        Failure: a broker does not tell the sizes of its logs.
    """
    if by == "replicas":
        return None
    sizes = log_bytes(admin, partitions)
    if by == "bytes":
        return Weighed("BYTES", sizes, has_leader_weights=False)
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return Weighed("BYTES-LAST-HOUR", _written(admin, sizes, now_ms), has_leader_weights=True)


def log_bytes(admin: Admin, partitions: Mapping[TopicPartition, PartitionDescription]) -> dict[TopicPartition, int]:
    """Return the bytes of the largest replica of each partition: a replica that falls behind has yet to get the rest.

    Raises:
        Failure: a broker does not answer.
    """
    sizes = dict.fromkeys(partitions, 0)
    for broker, folders in admin.describe_log_dirs().items():
        if isinstance(folders, KafkaError):
            raise failure_of(folders, f"the sizes of the logs of broker {broker}")
        for replica in (each for folder in folders for each in folder.replicas):
            if replica.partition in sizes and not replica.is_future:
                sizes[replica.partition] = max(sizes[replica.partition], replica.size_in_bytes)
    return sizes


def _written(admin: Admin, sizes: Mapping[TopicPartition, int], now_ms: int) -> dict[TopicPartition, int]:
    bounds = log_bounds(admin, sizes)
    known = {at: (start, end) for at, (start, end) in bounds.items() if start is not None and end is not None}
    written = {}
    for at, first in first_since(admin, known, now_ms - LOAD_WINDOW_MS).items():
        start, end = known[at]
        written[at] = sizes[at] * (end - first.offset) // max(end - start, 1)
    return written
