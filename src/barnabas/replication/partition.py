"""One replica on this broker: its partition's leader, in-sync replicas and high watermark.

    metadata image ──► PartitionRegistration ──► Partition ──► PartitionLog
                       (leader, epoch, ISR)      (checks, high watermark)   (bytes)

- Only the leader at the current epoch appends and serves clients. A client with an older leader epoch gets FENCED_LEADER_EPOCH and
  must refresh its metadata. A client with a newer one gets UNKNOWN_LEADER_EPOCH and must retry, because this broker lags (KIP-320).
- The high watermark is the smallest log end offset of the in-sync replicas and never decreases; a sole replica's records are committed
  when they are in its log. While fewer than min.insync.replicas are in sync it stands still, also for records with acks=1.
- acks=all needs min.insync.replicas in-sync replicas, but never more than the partition has replicas (KIP-966).
- The log is opened on first use: a broker with thousands of partitions starts, and creates thousands more, without touching their
  files.

A follower's fetch reports its log end through `update_follower`. Only the controller shrinks and expands the ISR.

Source: Kafka's `Partition`; KIP-101, KIP-279, KIP-320, KIP-966.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.log.append_checks import Opened
from barnabas.log.partition_log import AppendInfo, AppendOrigin, PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError, StaleMetadataError

if TYPE_CHECKING:
    from barnabas.log.transaction_verification import VerificationGuard
    from barnabas.metadata.topics_image import PartitionRegistration
    from barnabas.replication.fetch_reader import FetchPartition
    from barnabas.replication.hosted_topic import HostedTopic

__all__ = ["LogOpener", "Partition"]

ACKS_ALL = -1


class LogOpener(Protocol):
    """Opens a partition's log on first use."""

    def open_log(self, partition: Partition) -> PartitionLog: ...


class Partition:
    """One replica and, while it leads, its partition's state.

    Attributes:
        leader: the leader's node id, -1 for none.
        observers: the partitions of fetch sessions that observe this one; None until the first one.
        is_deleted: set when the replica leaves this broker; holders of a reference must then look it up again.
    """

    __slots__ = (
        "_follower_ends",
        "_is_sole_replica",
        "_log",
        "_min_isr",
        "_node_id",
        "_opener",
        "index",
        "is_deleted",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "observers",
        "replicas",
        "topic",
    )

    def __init__(self, topic: HostedTopic, index: int, node_id: int, opener: LogOpener) -> None:
        self.topic = topic
        self.index = index
        self.leader = -1
        self.leader_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.is_leader = False
        self.is_deleted = False
        self.observers: dict[FetchPartition, None] | None = None
        self._node_id = node_id
        self._opener = opener
        self._log: PartitionLog | None = None
        self._is_sole_replica = False
        self._min_isr = -1
        self._follower_ends: dict[int, int] | None = None

    def __repr__(self) -> str:
        name, epoch = f"{self.topic.name}-{self.index}", self.leader_epoch
        return f"<Partition name={name} leader={self.leader} epoch={epoch} isr={list(self.isr)}>"

    def update(self, registration: PartitionRegistration) -> None:
        """Apply the registration of a newer image."""
        assert registration.leader_epoch >= self.leader_epoch, "the leader epoch of a topic id never decreases"
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        self.leader = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.isr = registration.isr
        self.replicas = registration.replicas
        self.is_leader = registration.leader == self._node_id
        self._min_isr = -1
        self._is_sole_replica = self._commits_alone()
        if not self.is_leader and self._log is not None:
            self._log.forget_verifications()
        if is_new_epoch:
            self._follower_ends = None
        if self._log is not None:
            if is_new_epoch and self.is_leader:
                self._log.begin_epoch(self.leader_epoch)
            self._advance_high_watermark(self._log)

    def config_changed(self) -> None:
        """Pass the topic's changed settings to the log, if it is open."""
        self._min_isr = -1
        self._is_sole_replica = self._commits_alone()
        if self._log is not None:
            self._log.reconfigure(self.topic.config)
            self._advance_high_watermark(self._log)

    def _commits_alone(self) -> bool:
        if not self.is_leader or self.isr != (self._node_id,):
            return False
        # With one replica the topic's settings, which are read when they are needed, do not matter.
        return len(self.replicas) == 1 or self.effective_min_isr <= 1

    @property
    def effective_min_isr(self) -> int:
        """The in-sync replicas that acks=all needs: min.insync.replicas, at most the number of replicas."""
        if self._min_isr < 0:
            self._min_isr = min(self.topic.config.min_insync_replicas, max(1, len(self.replicas)))
        return self._min_isr

    @property
    def log(self) -> PartitionLog:
        """The replica's log, opened on first use.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR if it cannot be opened.
        """
        return self._log or self._open()

    @property
    def open_log(self) -> PartitionLog | None:
        """The log, None before its first use."""
        return self._log

    def _open(self) -> PartitionLog:
        log = self._opener.open_log(self)
        self._log = log
        if self.is_leader:
            log.begin_epoch(self.leader_epoch)
        self._advance_high_watermark(log)
        return log

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Reject a request that this replica must not serve.

        Args:
            current_leader_epoch: from the request, -1 for none.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER.
        """
        self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise StaleMetadataError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Leader not local for partition {self.topic.name}-{self.index} on broker {self._node_id}",
            )

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Reject a request with another leader epoch than the current one."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        code = ErrorCode.FENCED_LEADER_EPOCH
        if current_leader_epoch > self.leader_epoch:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH
        raise StaleMetadataError(
            code,
            f"Leader epoch {current_leader_epoch} was given for {self.topic.name}-{self.index}, "
            f"where it is {self.leader_epoch}",
        )

    def append_as_leader(
        self,
        records: memoryview,
        acks: int,
        origin: AppendOrigin,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        opened: Opened | None = None,
    ) -> AppendInfo:
        """Append batches at the log's end, and advance the high watermark if the in-sync replicas allow it.

        Args:
            records: whole batches; their offset and leader epoch are set in place.
            acks: -1 demands enough in-sync replicas.
            guard: proves that a transaction includes this partition; see `begin_verification`.
            transaction_version: of the transaction that a marker ends.
            opened: as `PartitionLog.append_as_leader`.

        Raises:
            RecordsToOpen: only with `opened`.
            KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or an error of the log.
        """
        if not self.is_leader:
            self.check_leader()
        if acks == ACKS_ALL and len(self.isr) < (self._min_isr if self._min_isr >= 0 else self.effective_min_isr):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement of "
                f"{self.effective_min_isr} for partition {self.topic.name}-{self.index}",
            )
        log = self._log or self._open()
        info = log.append_as_leader(
            records,
            self.leader_epoch,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
            opened=opened,
        )
        if self._is_sole_replica:
            log.high_watermark = log.log_end_offset
        else:
            self._advance_high_watermark(log)
        return info

    def begin_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Begin to verify that a transaction includes this partition; return None if it is open in the log.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH.
        """
        if not self.is_leader:
            self.check_leader()
        return self.log.begin_verification(
            producer_id, sequence, producer_epoch, supports_epoch_bump=supports_epoch_bump
        )

    def update_follower(self, replica_id: int, log_end_offset: int) -> bool:
        """Record a follower's log end, from its fetch; return whether the high watermark moved.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER if the node has no replica of this partition.
        """
        if replica_id not in self.replicas or replica_id == self._node_id:
            raise StaleMetadataError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {replica_id} has no replica of {self.topic.name}-{self.index}",
            )
        ends = self._follower_ends
        if ends is None:
            ends = self._follower_ends = {}
        ends[replica_id] = log_end_offset
        return self._advance_high_watermark(self.log)

    def _advance_high_watermark(self, log: PartitionLog) -> bool:
        # Below min.insync.replicas it stands still: a replica that leaves the ISR now still has every committed record (KIP-966).
        if not self.is_leader or len(self.isr) < self.effective_min_isr:
            return False
        end = log.log_end_offset
        if not self._is_sole_replica:
            ends = self._follower_ends or {}
            for replica in self.isr:
                if replica != self._node_id:
                    end = min(end, ends.get(replica, -1))
        if end <= log.high_watermark:
            return False
        log.high_watermark = end
        return True

    def last_offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at or below `epoch` and the offset where it ends, (-1, -1) if the log has none.

        The current epoch ends at the log end, even before its first record.
        """
        log = self.log
        if epoch == self.leader_epoch and self.is_leader:
            return epoch, log.log_end_offset
        return log.end_offset_for_epoch(epoch)
