"""What the sink's topics hold in the end: for a reader of committed records, and in the logs themselves, aborted records too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from barnabas.client.outcome import results
from barnabas.client.partition_records import fetch_records
from barnabas.client.patience import insist
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.spark.sink.decision_topic import TOPIC
from barnabas.spark.sink.decisions import Decision
from tests.simulation.history import Partition
from tests.simulation.sink.sink_history import Entry, SinkHistory
from tests.spark.sink.sink_run import committed_values

PATIENCE_MS = 30_000


def read_everything(cluster: Cluster, topics: Sequence[str], sinks: Sequence[str], history: SinkHistory) -> None:
    """Read the topics of the rows, and that of the decisions, in a process; write down what they hold."""
    partitions = [*_partitions(cluster, topics), TopicPartition(TOPIC, 0)]
    ends = _settled(cluster, partitions, history)
    for partition in partitions:
        history.logs[Partition(*partition)] = _log(cluster, partition, ends[partition])
    for sink in sinks:
        history.decisions[sink] = decisions(history.logs[Partition(TOPIC, 0)], sink)
    if not history.held_back:
        for topic in topics:
            history.committed[topic] = committed_values(cluster, topic)


def committed_now(cluster: Cluster, topic: str) -> set[str]:
    """Return the committed values of a topic, those behind an open transaction too."""
    found: set[str] = set()
    for partition, end in _ends(cluster, _partitions(cluster, [topic]), READ_UNCOMMITTED).items():
        log = _log(cluster, partition, end)
        outcomes = ends_of_transactions(log)
        found |= {(each.value or b"").decode() for each, is_there in zip(log, outcomes, strict=True) if is_there}
    return found


def decisions(log: Sequence[Entry], sink: str) -> list[Decision]:
    """Return a sink's committed decisions, in the order of the log."""
    outcomes = ends_of_transactions(log)
    return [
        Decision.from_json(each.value)
        for number, each in enumerate(log)
        if each.is_commit is None and each.key == sink.encode() and each.value is not None and outcomes[number]
    ]


def ends_of_transactions(log: Sequence[Entry]) -> list[bool | None]:
    """Return for each record whether its transaction was committed, or aborted; None while it is open."""
    outcomes: list[bool | None] = [None] * len(log)
    still_open: dict[int, list[int]] = {}
    for number, each in enumerate(log):
        if each.is_commit is None:
            if each.producer_id >= 0:
                still_open.setdefault(each.producer_id, []).append(number)
            else:
                outcomes[number] = True
        else:
            for earlier in still_open.pop(each.producer_id, []):
                outcomes[earlier] = each.is_commit
    return outcomes


def _partitions(cluster: Cluster, topics: Sequence[str]) -> list[TopicPartition]:
    found = insist(cluster, lambda: cluster.metadata(topics).topics, PATIENCE_MS)
    return [TopicPartition(name, index) for name in topics for index in range(len(found[name].partitions))]


def _ends(cluster: Cluster, partitions: Sequence[TopicPartition], isolation: int) -> dict[TopicPartition, int]:
    wanted = dict.fromkeys(partitions, LATEST)
    found = insist(cluster, lambda: results(list_offsets(cluster, wanted, isolation_level=isolation)), PATIENCE_MS)
    return {partition: each.offset for partition, each in found.items()}


def _settled(cluster: Cluster, partitions: Sequence[TopicPartition], history: SinkHistory) -> dict[TopicPartition, int]:
    """Wait until no transaction is open, because a broker answers EndTxn before the markers are written; return the ends."""
    deadline = cluster.deadline(PATIENCE_MS)
    while True:
        ends = _ends(cluster, partitions, READ_UNCOMMITTED)
        stable = _ends(cluster, partitions, READ_COMMITTED)
        if ends == stable:
            return ends
        if not cluster.pause(1, deadline):
            history.held_back += [
                f"{each} at {stable[each]} of {ends[each]}" for each in ends if stable[each] < ends[each]
            ]
            return ends


def _log(cluster: Cluster, partition: TopicPartition, end: int) -> list[Entry]:
    begin = insist(cluster, lambda: results(list_offsets(cluster, {partition: EARLIEST})), PATIENCE_MS)
    offset, found = begin[partition].offset, list[Entry]()
    while offset < end:
        records = insist(cluster, partial(fetch_records, cluster, partition, offset), PATIENCE_MS)
        for position, header in iter_batches(records):
            for record in iter_records(records, position, header=header) if header.next_offset > offset else ():
                key, value = record.key, record.value
                is_commit = control_type(record.key) is ControlRecordType.COMMIT if header.is_control else None
                if is_commit is not None:
                    key = value = None
                found.append(
                    Entry(
                        record.offset,
                        header.producer_id,
                        header.producer_epoch,
                        None if key is None else bytes(key),
                        None if value is None else bytes(value),
                        is_commit,
                    )
                )
            offset = max(offset, header.next_offset)
    return found
