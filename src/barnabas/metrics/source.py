"""What the metrics are made from: the running node, and what is looked up once for a scrape. Control plane.

A partition's row is made once and used by every family that has one sample for each partition. A log that nobody has used since
the start is opened for it, since its offsets and its size are in its files; a partition that was never written has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.api.context import BrokerServices
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.topics_image import PartitionRegistration
from barnabas.metrics.exposition import labels
from barnabas.metrics.request_times import RequestTimes
from barnabas.protocol.errors import KafkaError
from barnabas.quota.connection_quotas import ConnectionQuotas
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.share.share_partition_manager import SharePartitionManager

__all__ = ["PartitionRow", "QuorumState", "Source", "partition_rows"]


class QuorumState(NamedTuple):
    """This node's place in the metadata quorum; `commits` of its own took `commit_ms` together."""

    leader: int
    epoch: int
    vote: int
    state: str
    high_watermark: int
    log_end_offset: int
    commits: int
    commit_ms: int


class Source(Protocol):
    """A running node as the metrics see it.

    Attributes:
        listener_counts: connections by listener name.
        share_partitions: None while no share group has asked for a record.
    """

    @property
    def services(self) -> BrokerServices: ...
    @property
    def request_times(self) -> RequestTimes: ...
    @property
    def connection_quotas(self) -> ConnectionQuotas: ...
    @property
    def share_partitions(self) -> SharePartitionManager | None: ...
    def listener_counts(self) -> Sequence[tuple[str, int]]: ...
    def quorum(self) -> QuorumState: ...


class PartitionRow(NamedTuple):
    """One partition as of the scrape.

    Attributes:
        labels: topic and partition as text.
        replica: None when another broker holds it.
        log: None when it was never written, or cannot be read.
        min_isr: min.insync.replicas in force; 0 when another broker holds it.
    """

    topic: str
    number: int
    labels: str
    registration: PartitionRegistration
    replica: Partition | None
    log: PartitionLog | None
    min_isr: int


def partition_rows(services: BrokerServices) -> Iterator[PartitionRow]:
    """Each partition of the cluster, in order of names; what is looked up for one may take a file's opening."""
    replicas = services.replica_manager
    for name, topic in sorted(services.image().topics.by_name.items()):
        hosted = replicas.topics.get(name)
        prefix = labels({"topic": name})
        for index, registration in sorted(topic.partitions.items()):
            replica = None if hosted is None else hosted.partitions.get(index)
            yield PartitionRow(
                name,
                index,
                f'{prefix},partition="{index}"',
                registration,
                replica,
                _log(services, name, replica),
                0 if replica is None else replica.effective_min_isr,
            )


def _log(services: BrokerServices, topic: str, replica: Partition | None) -> PartitionLog | None:
    if replica is None:
        return None
    if replica.open_log is not None:
        return replica.open_log
    try:
        # Through the replica when there is a log at all, so that it opens once and its high watermark is right.
        found = services.replica_manager.log_manager.get(topic, replica.index)
        return None if found is None else replica.log
    except KafkaError:
        return None
