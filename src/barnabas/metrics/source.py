"""The input of the metrics: the running node, and a row for each partition.

A partition's row is made once a scrape and used by every family with a sample for each partition. A log that was not used since the
start is opened for its row, because its offsets and size are in its files; a partition that was never written has no log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from barnabas.api.serving.context import BrokerServices
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metrics.exposition import labels
from barnabas.metrics.request_times import RequestTimes
from barnabas.protocol.errors import KafkaError
from barnabas.quota.connection_quotas import ConnectionQuotas
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.share.share_partition_manager import SharePartitionManager

__all__ = ["PartitionRow", "QuorumState", "Source", "partition_rows"]


class QuorumState(NamedTuple):
    """The state of the metadata quorum on this node; its `commits` commits took `commit_ms` together.

    Attributes:
        unclean_elections: how many leaders this node elected, as the controller, that may lack records.
        requests, responses, bytes_out, bytes_in: sent to the other nodes of the quorum, and their answers.
    """

    leader: int
    epoch: int
    vote: int
    state: str
    high_watermark: int
    log_end_offset: int
    commits: int
    commit_ms: int
    unclean_elections: int
    requests: int
    responses: int
    bytes_out: int
    bytes_in: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A running node as the metrics see it.

    Attributes:
        share_partitions: returns None until a member of a share group fetches.
        listener_counts: returns the number of connections by listener name.
        quorum: returns the state of the quorum as of now.
        certificates: returns of each certificate of this node its listener, its use ("accepts" or "dials"), and its last second, in
            epoch seconds.
    """

    services: BrokerServices
    request_times: RequestTimes
    connection_quotas: ConnectionQuotas
    share_partitions: Callable[[], SharePartitionManager | None]
    listener_counts: Callable[[], Sequence[tuple[str, int]]]
    quorum: Callable[[], QuorumState]
    certificates: Callable[[], Sequence[tuple[str, str, int]]]


class PartitionRow(NamedTuple):
    """One partition as of the scrape.

    Attributes:
        labels: topic and partition as text.
        replica: None if another broker holds it.
        log: None if it was never written or cannot be read.
        min_isr: the effective min.insync.replicas; 0 if another broker holds it.
    """

    topic: str
    number: int
    labels: str
    registration: PartitionRegistration
    replica: Partition | None
    log: PartitionLog | None
    min_isr: int


def partition_rows(services: BrokerServices) -> Iterator[PartitionRow]:
    """Yield each partition of the cluster, by topic name; a step may open a log's files."""
    replicas = services.replica_manager
    by_name = services.image().topics.by_name
    for name in sorted(by_name):
        hosted = replicas.topics.get(name)
        prefix = labels({"topic": name})
        for index, registration in by_name[name].partitions.items():
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
        # The replica opens an existing log, so that it opens once and has the right high watermark.
        found = services.replica_manager.log_manager.get(topic, replica.index)
        return None if found is None else replica.log
    except KafkaError:
        return None
