"""The logs of this broker's replicas of partitions without a leader, for the controller (`metadata.unclean_recovery`).

- Only of a partition that is without a leader here too: nothing is fetched for it any more, so its log does not change.
- A log that does not exist is an empty one, and so is one of another topic of this name: it will be set aside. Of a log that cannot be
  opened nothing is said.
- One heartbeat says it of a thousand partitions at most. The others follow, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from barnabas.log.errors import KafkaStorageError
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.protocol.messages import BrokerHeartbeatRequest

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition
    from barnabas.replication.replica_manager import ReplicaManager

PARTITIONS_MAX = 1_000

ReplicaLog = BrokerHeartbeatRequest.ReplicaLog


class LeaderlessReplicas:
    """The partitions without a leader of which this broker has a replica."""

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replica_manager = replica_manager
        self._next = 0
        # The part of the index that was looked at last; another one is another object.
        self._seen: object = NOTHING

    def __repr__(self) -> str:
        return f"<LeaderlessReplicas of {self._replica_manager!r}>"

    def have_changed(self) -> bool:
        """Return whether the image has other partitions without a leader than at the last call."""
        image = self._replica_manager.image
        now = NOTHING if image is None else image.topics.partition_index.get(WITHOUT_LEADER, NOTHING)
        seen, self._seen = self._seen, now
        return now is not seen and bool(now)

    def logs(self) -> list[ReplicaLog]:
        """Return what the replicas have; of each partition again in a later call, for as long as it has no leader."""
        partitions = list(self._partitions())
        if not partitions:
            return []
        first = self._next % len(partitions)
        turn = [*partitions[first:], *partitions[:first]]
        self._next = first + PARTITIONS_MAX if len(partitions) > PARTITIONS_MAX else 0
        return [log for partition in islice(turn, PARTITIONS_MAX) if (log := self._log_of(partition)) is not None]

    def _partitions(self) -> Iterator[Partition]:
        manager = self._replica_manager
        if manager.image is None:
            return
        topics = manager.image.topics
        for topic_id, indexes in topics.partition_index.get(WITHOUT_LEADER, NOTHING).items():
            hosted = manager.topics.get(topics.by_id[topic_id].name)
            if hosted is None or hosted.topic_id != topic_id:
                continue
            for index in indexes:
                partition = hosted.partitions.get(index)
                if partition is not None and partition.leader < 0:
                    yield partition

    def _log_of(self, partition: Partition) -> ReplicaLog | None:
        topic, logs = partition.topic, self._replica_manager.log_manager
        try:
            log = partition.open_log
            if log is None:
                found = logs.get(topic.name, partition.index)
                log = found if logs.is_of(topic.name, partition.index, topic.topic_id) else None
        except KafkaStorageError:
            return None
        end_offset = 0 if log is None else log.log_end_offset
        return ReplicaLog(
            topic_id=topic.topic_id,
            partition=partition.index,
            current_leader_epoch=partition.leader_epoch,
            last_written_leader_epoch=-1 if log is None else last_epoch(log),
            log_end_offset=end_offset,
        )


def last_epoch(log: PartitionLog) -> int:
    """Return the leader epoch of the last record, also of one that is deleted meanwhile; -1 for a log that never had any."""
    if log.log_end_offset == log.log_start_offset:
        return log.latest_epoch if log.log_end_offset else -1
    return log.epoch_for_offset(log.log_end_offset - 1)
