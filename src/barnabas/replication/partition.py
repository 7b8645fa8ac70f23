"""One replica on this broker: its partition's leader, in-sync replicas and high watermark.

    metadata image ──► PartitionRegistration ──► Partition ──► PartitionLog
                       (leader, epoch, ISR)          │         (bytes)
                                                     ├──► PartitionState   the ISR, and a change of it that is not answered yet
                                                     └──► Followers        their log ends and fetch times, only at the leader

- Only the leader at the current epoch appends and serves clients. A client with an older leader epoch gets FENCED_LEADER_EPOCH and
  must refresh its metadata. A client with a newer one gets UNKNOWN_LEADER_EPOCH and must retry, because this broker lags (KIP-320).
- The high watermark is the smallest log end offset of the maximal ISR and never decreases; `followers` has the details. A sole
  replica's records are committed when they are in its log.
- While the committed ISR is smaller than min.insync.replicas the high watermark stands still, also for records with acks=1. acks=all
  then gets NOT_ENOUGH_REPLICAS. A partition never needs more in-sync replicas than it has replicas (KIP-966).
- With `barnabas.flush.before.ack` this replica's own part of the high watermark is its recovery point, not its log end, also where
  it is the sole replica (`leader_sync`). Followers report only what they have synced (`replica_fetcher`).
- The answer of AlterPartition and the metadata log report the same changes. A registration changes neither the ISR nor a pending change
  unless its partition epoch is newer than the known one. (Kafka drops the pending change; the high watermark could then pass a replica
  that the controller is just adding.)
- The log is opened on first use: a broker with thousands of partitions starts, and creates thousands more, without touching their
  files.

A follower's fetch reports its log end through `update_follower`. `prepare_expand_isr` and `prepare_shrink_isr` give the proposals for
AlterPartition, which `replicated_partitions` passes on.

Source: Kafka's `Partition`; KIP-101, KIP-279, KIP-320, KIP-497, KIP-966.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from barnabas.log.append_checks import Opened
from barnabas.log.errors import KafkaStorageError
from barnabas.log.partition_log import AppendInfo, AppendOrigin, PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError, StaleMetadataError
from barnabas.replication.followers import BrokerStates, Followers
from barnabas.replication.leader_sync import LeaderSync
from barnabas.replication.partition_state import (
    CommittedPartitionState,
    PartitionState,
    PendingExpandIsr,
    PendingIsrChange,
    PendingShrinkIsr,
)

if TYPE_CHECKING:
    from barnabas.log.transaction_verification import VerificationGuard
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.replication.topic import Topic

__all__ = ["ACKS_ALL", "Partition", "PartitionHost", "PartitionObserver"]

ACKS_ALL = -1
UNREGISTERED = CommittedPartitionState((), -1)
NOT_OPEN = -2
"""The end of a log that is not open: no follower's log ends there."""


class PartitionObserver:
    """The observer of a partition's changes: its part of a fetch session."""

    __slots__ = ()

    def note_change(self, *, also_followers: bool) -> Hashable | None:
        """Note a change; return the key of the purgatory that is notified of it, if any.

        Args:
            also_followers: whether a follower's wait ends too.
        """
        raise NotImplementedError


class PartitionHost(BrokerStates, Protocol):
    """The ReplicaManager, for a partition."""

    def open_log(self, partition: Partition) -> PartitionLog:
        """Open a partition's log; called by the partition on first use."""
        ...

    def high_watermark_moved(self, partition: Partition) -> None:
        """Wake the requests that wait for the commit."""
        ...

    def log_synced(self, partition: Partition) -> None:
        """Wake the producers that wait until the leader alone has synced their records, or has failed to."""
        ...

    def disk_failed(self, partition: Partition, error: KafkaStorageError) -> None:
        """Give up this replica, so that the others continue without it: its disk rejects records."""
        ...


class Partition:
    """One replica and, while it leads, its partition's state.

    Attributes:
        leader: the leader's node id, -1 for none.
        state: the ISR, and a pending change of it.
        epoch_start_offset: the log end when this leader's epoch began; -1 if this replica does not lead, or its log is not open.
        leaderships: how often this replica has become the leader.
        observers: of this partition; None until the first one.
        is_deleted: set when the replica leaves this broker; holders of a reference must then look it up again.
        lost: why its log is gone, if its directory is offline. It then neither leads nor follows, whatever the metadata says.
    """

    __slots__ = (
        "_followers",
        "_host",
        "_log",
        "_min_isr",
        "_node_id",
        "_sync",
        "epoch_start_offset",
        "index",
        "is_deleted",
        "is_leader",
        "leader",
        "leader_epoch",
        "leaderships",
        "lost",
        "observers",
        "replicas",
        "state",
        "topic",
    )

    def __init__(self, topic: Topic, index: int, node_id: int, host: PartitionHost) -> None:
        self.topic = topic
        self.index = index
        self.leader = -1
        self.leader_epoch = -1
        self.epoch_start_offset = -1
        self.state: PartitionState = UNREGISTERED
        self.replicas: tuple[int, ...] = ()
        self.is_leader = False
        self.leaderships = 0
        self.is_deleted = False
        self.lost: KafkaStorageError | None = None
        self.observers: dict[PartitionObserver, None] | None = None
        self._node_id = node_id
        self._host = host
        self._log: PartitionLog | None = None
        self._min_isr = -1
        self._followers: Followers | None = None
        self._sync: LeaderSync | None = None

    def __repr__(self) -> str:
        name, epoch = f"{self.topic.name}-{self.index}", self.leader_epoch
        return f"<Partition name={name} leader={self.leader} epoch={epoch} isr={list(self.isr)}>"

    def update(self, registration: PartitionRegistration) -> None:
        """Apply the registration of a newer image; nothing happens if an answer of AlterPartition was even newer."""
        known_epoch = self.state.partition_epoch
        if registration.partition_epoch < known_epoch:
            return
        assert registration.leader_epoch >= self.leader_epoch, "the leader epoch of a topic id never decreases"
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        if registration.partition_epoch > known_epoch:
            self.state = CommittedPartitionState(registration.isr, registration.partition_epoch)
        self.leader = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.replicas = registration.replicas
        is_leader = registration.leader == self._node_id and self.lost is None
        self.leaderships += is_leader and not self.is_leader
        self.is_leader = is_leader
        self._min_isr = -1
        if not self.is_leader and self._log is not None:
            self._log.forget_verifications()
        if is_new_epoch:
            self._followers = None
            self.epoch_start_offset = -1
        self._followers = self._followers_now()
        if self._log is not None:
            if is_new_epoch and self.is_leader:
                self._begin_epoch(self._log)
            self._begin_sync(self._log)
            self._advance_high_watermark(self._log)

    def _followers_now(self) -> Followers | None:
        """Return the followers, None for a sole replica and where this broker does not lead."""
        if not self.is_leader or len(self.replicas) == 1:
            return None
        others = [replica for replica in self.replicas if replica != self._node_id]
        return Followers(self._host, others, self.isr, self._followers)

    def lose_log(self, error: KafkaStorageError) -> None:
        """Have no log any more, until the end of this run: its directory is offline."""
        self.lost = error
        self.is_leader = False
        self._log = self._followers = self._sync = None
        self.epoch_start_offset = -1

    def log_moved(self, log: PartitionLog) -> None:
        """Continue with another log of the same records: that of another directory."""
        if self._log is not None:
            log.take_verifications(self._log)
        if self._sync is not None:
            self._sync.forget()
        self._log, self._sync = log, None
        if self.is_leader:
            log.begin_epoch(self.leader_epoch)
        self._begin_sync(log)
        self._advance_high_watermark(log)

    def config_changed(self) -> None:
        """Pass the topic's changed settings to the log, if it is open."""
        self._min_isr = -1
        if self._log is not None:
            self._log.reconfigure(self.topic.config)
            if self.awaits_sync and not self.is_leader:
                self._log.flush_elsewhere()  # The leader may know this end already.
            self._begin_sync(self._log)
            self._advance_high_watermark(self._log)

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed in-sync replicas."""
        return self.state.isr

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.state.isr) < self.effective_min_isr

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
        if self.lost is not None:
            raise self.lost
        try:
            log = self._host.open_log(self)
        except KafkaStorageError as error:
            self._make_way(error)
            raise
        self._log = log
        self._sync = None
        if self.is_leader:
            self._begin_epoch(log)
        self._begin_sync(log)
        self._advance_high_watermark(log)
        return log

    def _begin_epoch(self, log: PartitionLog) -> None:
        log.begin_epoch(self.leader_epoch)
        self.epoch_start_offset = log.log_end_offset

    def check_high_watermark_is_known(self) -> None:
        """Reject a request for the end of the log, if this leader may not know yet the high watermark of the leader before it.

        Until its high watermark reaches the start of its epoch, clients may have seen a higher one (KIP-207).

        Raises:
            KafkaError: OFFSET_NOT_AVAILABLE.
        """
        if self.log.high_watermark < self.epoch_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"The high watermark of {self.topic.name}-{self.index} has not reached the start of leader epoch "
                f"{self.leader_epoch}",
            )

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Reject a request that this replica must not serve.

        Args:
            current_leader_epoch: from the request, -1 for none.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        if self.lost is not None:
            raise self.lost
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
        followers = self._followers
        if followers is not None and acks == ACKS_ALL and self.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement of "
                f"{self.effective_min_isr} for partition {self.topic.name}-{self.index}",
            )
        log = self._log or self._open()
        before = -1 if followers is None else log.log_end_offset
        try:
            info = log.append_as_leader(
                records,
                self.leader_epoch,
                origin=origin,
                guard=guard,
                transaction_version=transaction_version,
                opened=opened,
            )
        except KafkaStorageError as error:
            self._make_way(error)
            raise
        if followers is not None:
            followers.leader_appended(before)
        elif not log.config.barnabas_flush_before_ack:
            log.high_watermark = log.log_end_offset
            return info
        if log.config.barnabas_flush_before_ack:
            self._begin_sync(log)
        self._advance_high_watermark(log)
        return info

    # Syncs before the acknowledgement

    @property
    def awaits_sync(self) -> bool:
        """Whether the log has records that must be synced before they count, here or at the leader."""
        log = self._log
        return log is not None and log.config.barnabas_flush_before_ack and log.recovery_point < log.log_end_offset

    @property
    def sync_failure(self) -> KafkaStorageError | None:
        """Why records of this leader's log will not be synced any more."""
        return None if self._sync is None else self._sync.failure

    def _begin_sync(self, log: PartitionLog) -> None:
        if self.is_leader and self.awaits_sync:
            if self._sync is None:
                self._sync = LeaderSync(log, self._synced)
            self._sync.begin()

    def _synced(self, error: KafkaStorageError | None) -> None:
        log = self._log
        if log is None or self.is_deleted:
            return
        if error is None:
            self._begin_sync(log)
        elif self.is_leader:
            self._make_way(error)
        if self._advance_high_watermark(log):
            self._host.high_watermark_moved(self)
        else:
            self._host.log_synced(self)

    def _make_way(self, error: KafkaStorageError) -> None:
        if len(self.isr) > 1:
            self.disk_failed(error)

    def disk_failed(self, error: KafkaStorageError) -> None:
        """Tell the host that this disk takes no records; another replica leads the partition, or can lead it."""
        self._host.disk_failed(self, error)

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

    def check_follower(self, replica_id: int, current_leader_epoch: int = -1, broker_epoch: int = -1) -> None:
        """Reject the fetch of a node that is not a follower of this leader.

        Args:
            current_leader_epoch, broker_epoch: from the request, -1 for none.

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH if the request has this leader's epoch: this broker may not know yet that the node gets
                a replica. Else NOT_LEADER_OR_FOLLOWER, also for a broker that has registered again since. The node retries both.
        """
        if self._followers is None or replica_id not in self._followers:
            raise StaleMetadataError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if current_leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"Broker {replica_id} has no replica of {self.topic.name}-{self.index}",
            )
        if 0 <= broker_epoch < self._host.broker_epoch(replica_id):
            raise StaleMetadataError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {replica_id} has registered again since its epoch {broker_epoch}",
            )

    def update_follower(
        self, replica_id: int, fetch_offset: int, log_start_offset: int = -1, broker_epoch: int = -1
    ) -> bool:
        """Record a follower's fetch; return whether the high watermark moved.

        The caller has checked the follower, and has read from `fetch_offset`: below it the follower's log and this one are the same.
        """
        assert self._followers is not None, f"{self} has no followers"
        log = self.log
        self._followers.fetched(replica_id, fetch_offset, log_start_offset, broker_epoch, log.log_end_offset)
        return self._advance_high_watermark(log)

    def _advance_high_watermark(self, log: PartitionLog) -> bool:
        if not self.is_leader:
            return False
        end = log.log_end_offset
        if self._followers is not None:
            # Below min.insync.replicas it stands still: a replica that leaves the ISR now still has every committed record (KIP-966).
            if self.is_under_min_isr:
                return False
            end = self._followers.smallest_end(end, self.state.maximal_isr)
        if log.config.barnabas_flush_before_ack:
            end = min(end, log.recovery_point)
        if end <= log.high_watermark:
            return False
        log.high_watermark = end
        return True

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.index}"

    @property
    def followers(self) -> Followers | None:
        """The followers' progress; None for a sole replica, and where this broker does not lead."""
        return self._followers

    @property
    def low_watermark(self) -> int:
        """The offset below which no replica in service has records any more; -1 if a follower has not said yet."""
        start = self.log.log_start_offset
        return start if self._followers is None else self._followers.smallest_start(start)

    def prepare_expand_isr(self, replica_id: int) -> PendingExpandIsr | None:
        """Begin to add a follower to the ISR; return the change to propose, None if the follower cannot join now.

        The follower must have all that is committed. It must also have reached the start of this epoch: records of the leader before
        may be committed above a high watermark that is not known yet.
        """
        state, followers = self.state, self._followers
        if followers is None or not isinstance(state, CommittedPartitionState) or replica_id in state.isr:
            return None
        log = self._log
        # A follower that has fetched has opened the log.
        if log is None or not followers.may_join(replica_id, max(log.high_watermark, self.epoch_start_offset)):
            return None
        self.state = change = state.expand(replica_id, self.leader_epoch, self._broker_epochs(followers))
        return change

    def outside_isr(self) -> list[int]:
        """Return the followers that are caught up and not in the ISR.

        A follower that lags may have all that is committed and could join too, but only its next fetch proves that its broker is there.
        """
        if self._followers is None or self._log is None or len(self.state.maximal_isr) == len(self.replicas):
            return []
        members = self.state.maximal_isr
        return [each for each in self._followers.caught_up(self._log.log_end_offset) if each not in members]

    def prepare_shrink_isr(self) -> PendingShrinkIsr | None:
        """Begin to remove the followers that lag from the ISR; return the change to propose, None if no follower can leave now."""
        state, followers = self.state, self._followers
        if followers is None or not isinstance(state, CommittedPartitionState):
            return None
        late = followers.late(state.isr, NOT_OPEN if self._log is None else self._log.log_end_offset)
        if not late:
            return None
        self.state = change = state.shrink(late, self.leader_epoch, self._broker_epochs(followers))
        return change

    def _broker_epochs(self, followers: Followers) -> dict[int, int]:
        return {**followers.broker_epochs(), self._node_id: self._host.broker_epoch(self._node_id)}

    def is_open_change(self, change: PendingIsrChange) -> bool:
        """Return whether a change still has to be sent: newer metadata has not ended it."""
        return self.state is change and not self.is_deleted

    def isr_change_completed(
        self, change: PendingIsrChange, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]
    ) -> None:
        """Apply the controller's answer to a proposal, unless newer metadata has ended the change before."""
        if self.state is change:
            self._end_change(change.completed(leader_epoch, partition_epoch, isr))

    def isr_change_failed(self, change: PendingIsrChange, code: ErrorCode) -> bool:
        """Apply the error of a proposal; return whether the same proposal must be sent again."""
        if self.state is not change:
            return False
        self._end_change(change.failed(code))
        return change.is_sent_again(code)

    def _end_change(self, state: PartitionState) -> None:
        self.state = state
        if self._log is not None and self._advance_high_watermark(self._log):
            self._host.high_watermark_moved(self)

    def last_offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at or below `epoch` and the offset where it ends, (-1, -1) if the log has none.

        The current epoch ends at the log end, even before its first record.
        """
        log = self.log
        if epoch == self.leader_epoch and self.is_leader:
            return epoch, log.log_end_offset
        return log.end_offset_for_epoch(epoch)
