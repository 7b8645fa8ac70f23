"""One partition as this broker holds it: who leads, who is in sync, and how far records are committed. Data plane.

    metadata image ──► PartitionRegistration ──► Partition ──► PartitionLog
                       (leader, epoch, ISR)      (checks, high watermark)   (bytes)

- Only the leader at the current epoch appends and serves clients. A client that names an older leader epoch gets
  FENCED_LEADER_EPOCH, a newer one UNKNOWN_LEADER_EPOCH (KIP-320): the one must refresh its metadata, the other must wait for us.
- The high watermark is the smallest log end offset among the in-sync replicas and never goes back; a sole replica's
  records are committed as soon as they are in its log.
- acks=all needs min.insync.replicas of them, but never more than there are replicas (KIP-966).
- The log is opened on first use: a broker with thousands of partitions starts, and creates thousands more, without
  touching their files.

Followers that fetch from this leader report through `update_follower`; shrinking and expanding the ISR is the controller's
decision and not made here.

Source: Kafka's `Partition`; KIP-101, KIP-279, KIP-320, KIP-966.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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
    """Who opens a partition's log on first use."""

    def open_log(self, partition: Partition) -> PartitionLog: ...


class Partition:
    """One replica and, while it leads, its partition's state.

    Attributes:
        leader: the leader's node id, -1 when there is none.
        observers: the partitions of fetch sessions that follow this one; None while there has been none.
        is_deleted: set when the replica leaves this broker; whoever kept a reference must look it up again.
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
        role = "leader" if self.is_leader else f"follower of {self.leader}"
        return f"<Partition {self.topic.name}-{self.index} {role} epoch={self.leader_epoch} isr={list(self.isr)}>"

    # State from the metadata log

    def update(self, registration: PartitionRegistration) -> None:
        """Take the registration of a newer image."""
        assert registration.leader_epoch >= self.leader_epoch, "a leader epoch never goes back for one topic id"
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        self.leader = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.isr = registration.isr
        self.replicas = registration.replicas
        self.is_leader = registration.leader == self._node_id
        self._is_sole_replica = self.is_leader and all(replica == self._node_id for replica in self.isr)
        self._min_isr = -1
        if is_new_epoch:
            self._follower_ends = None
        if self._log is not None:
            if is_new_epoch and self.is_leader:
                self._log.begin_epoch(self.leader_epoch)
            self._advance_high_watermark(self._log)

    def config_changed(self) -> None:
        """The topic's settings changed: give them to the log, if it is open."""
        self._min_isr = -1
        if self._log is not None:
            self._log.reconfigure(self.topic.config)

    @property
    def effective_min_isr(self) -> int:
        """min.insync.replicas, at most the number of replicas."""
        if self._min_isr < 0:
            self._min_isr = min(self.topic.config.min_insync_replicas, max(1, len(self.replicas)))
        return self._min_isr

    # The log

    @property
    def log(self) -> PartitionLog:
        """The replica's log, opened now if need be.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR when it cannot be opened.
        """
        return self._log or self._open()

    @property
    def open_log(self) -> PartitionLog | None:
        """The log, or None while nobody has needed it."""
        return self._log

    def _open(self) -> PartitionLog:
        log = self._opener.open_log(self)
        self._log = log
        if self.is_leader:
            log.begin_epoch(self.leader_epoch)
        self._advance_high_watermark(log)
        return log

    # Checks

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Refuse a request that this replica must not answer.

        Args:
            current_leader_epoch: the epoch the client believes in, -1 when it does not say.

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
        """The half of `check_leader` that concerns followers too."""
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

    # Writing

    def append_as_leader(
        self,
        records: memoryview,
        acks: int,
        origin: AppendOrigin,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Append batches at the log's end, and advance the high watermark if no other replica has to agree.

        Args:
            records: whole batches; offset and leader epoch are written into them in place.
            acks: -1 asks for enough in-sync replicas.
            guard: proves that a transaction includes this partition; see `begin_verification`.
            transaction_version: of the transaction that a marker ends.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or what the log says.
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
            records, self.leader_epoch, origin=origin, guard=guard, transaction_version=transaction_version
        )
        if self._is_sole_replica:
            log.high_watermark = log.log_end_offset
        else:
            self._advance_high_watermark(log)
        return info

    def begin_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Begin to verify that a transaction includes this partition; None when its open transaction proves it.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH.
        """
        if not self.is_leader:
            self.check_leader()
        return self.log.begin_verification(
            producer_id, sequence, producer_epoch, supports_epoch_bump=supports_epoch_bump
        )

    def update_follower(self, replica_id: int, log_end_offset: int) -> bool:
        """A follower's fetch says how far its log reaches; returns whether the high watermark moved.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER when the node holds no replica of this partition.
        """
        if replica_id not in self.replicas or replica_id == self._node_id:
            raise StaleMetadataError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {replica_id} is no replica of {self.topic.name}-{self.index}",
            )
        ends = self._follower_ends
        if ends is None:
            ends = self._follower_ends = {}
        ends[replica_id] = log_end_offset
        return self._advance_high_watermark(self.log)

    def _advance_high_watermark(self, log: PartitionLog) -> bool:
        if not self.is_leader:
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

    # Looking up

    def last_offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch at or below `epoch` and the offset where it ends; (-1, -1) when the log knows none.

        The current epoch ends at the log's end even before its first record.
        """
        log = self.log
        if epoch == self.leader_epoch and self.is_leader:
            return epoch, log.log_end_offset
        return log.end_offset_for_epoch(epoch)
