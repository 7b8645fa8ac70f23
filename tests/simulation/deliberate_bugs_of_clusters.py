"""Faults of a cluster that only tests can switch on, one for each way in which replication and the quorum may go wrong.

They are to `cluster` what `deliberate_bugs` are to `one_broker`. `test_cluster_bugs.py` demands that each is caught within the number
of seeds that stands beside it. `aimed_faults` has the faults that show those which chance seldom does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
from barnabas.coordinator.shard_loader import ShardLoader
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.consumer.current_assignment import Reconciliation
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.log import partition_log, running_file
from barnabas.log.clean_shutdown_file import UNKNOWN_EPOCH
from barnabas.log.log_appender import LogAppender
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directories import LogDirectories
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata import assign_replicas, cluster_control, partition_leaders
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.partition_change_builder import PartitionChangeBuilder
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.unclean_recovery import Recovery
from barnabas.node.broker import BrokerServer
from barnabas.quorum.metadata_log import QuorumStateFile
from barnabas.raft import quorum, unattached
from barnabas.raft.election_state import ElectionState
from barnabas.replication import follower_log, replica_fetcher
from barnabas.replication.fetch_reader import Reading
from barnabas.replication.followers import Followers
from barnabas.replication.partition import Partition
from barnabas.replication.partition_state import CommittedPartitionState
from barnabas.replication.replicated_partitions import ReplicatedPartitions
from barnabas.transaction.coordinator_survey import CoordinatorSurvey, KnownTransaction
from barnabas.transaction.hanging_transactions import HangingTransactions
from barnabas.transaction.transaction_shard import TransactionCoordinatorShard
from barnabas.transaction.transaction_state import TransactionState
from tests.simulation.bug import Bug
from tests.simulation.deliberate_bugs import Switch, replaced, showing_all
from tests.simulation.deliberate_bugs_of_rare_worlds import BUGS as RARE_WORLDS
from tests.simulation.deliberate_bugs_of_side_topics import BUGS as SIDE_TOPICS
from tests.simulation.deliberate_bugs_of_tuning import BUGS as TUNING

_READ = Reading._read
_APPEND_FETCHED: Any = vars(replica_fetcher)["append_fetched"]


def commit_alone() -> Switch:
    """The high watermark is the leader's own end. Caught by durability, when the leader dies."""
    return replaced(Followers, "smallest_end", lambda self, leader_end_offset, maximal_isr: leader_end_offset)


def elect_anybody() -> Switch:
    """Any replica in service may lead, in sync or not. Caught by durability."""

    def may_lead(self: Any, replica: int) -> bool:
        return bool(self._rules.is_acceptable(replica))

    return replaced(PartitionChangeBuilder, "_may_lead", may_lead)


def never_truncate() -> Switch:
    """A follower keeps what its leader does not have. Caught by identical_replicas, or by progress."""

    def keep(log: PartitionLog, offset: int) -> None:
        return None

    return replaced(follower_log, "_truncate", keep)


def count_before_the_check() -> Switch:
    """A follower that diverges counts as one that has the records. Caught by durability, or by identical_replicas."""

    def read(self: Any, wanted: Any, partition: Partition) -> Any:
        if self._replica_id >= 0 and partition.followers is not None and self._replica_id in partition.followers:
            partition.update_follower(self._replica_id, wanted.fetch_offset, wanted.log_start_offset, -1)
        return _READ(self, wanted, partition)

    return replaced(Reading, "_read", read)


def join_too_early() -> Switch:
    """A follower joins the in-sync replicas wherever its log ends. Caught by durability."""
    return replaced(Followers, "may_join", lambda self, replica_id, from_offset: replica_id in self)


def never_shrink() -> Switch:
    """A follower that lags stays in the in-sync replicas. Caught by progress, while a cut lasts that the controller does not see."""
    return replaced(ReplicatedPartitions, "_shrink", lambda self, partition: None)


def forget_the_vote() -> Switch:
    """A node that restarts does not know whom it voted for, nor in which epoch. Caught by single_leader."""
    return replaced(QuorumStateFile, "write", lambda self, state: None)


def vote_twice() -> Switch:
    """A node gives its vote to everybody who asks. Caught by single_leader."""

    def grants(candidate: Any, voted: Any, leader_id: int, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return True

    return replaced(unattached, "grants_without_leader", grants)


def answer_before_the_commit() -> Switch:
    """A coordinator that has read its log answers from records that are not committed. Caught by steady_commits."""
    return replaced(ShardLoader, "_is_committed", lambda self, context: True)


def keep_former_metadata() -> Switch:
    """One change of metadata in five reaches no replica. Caught by progress, or by durability."""
    original = BrokerServer._on_metadata
    count = 0

    async def on_metadata(self: BrokerServer, delta: Any, image: Any) -> None:
        nonlocal count
        count += 1
        if count % 5 == 0 and self.image.provenance.offset >= 0:
            self.image = image
            return
        await original(self, delta, image)

    return replaced(BrokerServer, "_on_metadata", on_metadata)


def answer_from_the_former_shard() -> Switch:
    """A coordinator that is replaced keeps its shard, and answers from it when it is elected again. Caught by steady_commits."""
    return replaced(CoordinatorRuntime, "on_resigned", lambda self, partition, epoch=None: None)


def commit_below_min_isr() -> Switch:
    """The high watermark moves also below min.insync.replicas. Caught by monotonic_ends, when an eligible replica leads next."""
    advance = Partition._advance_high_watermark

    def advance_anyway(self: Partition, log: PartitionLog) -> bool:
        known, self._min_isr = self._min_isr, 1
        try:
            return advance(self, log)
        finally:
            self._min_isr = known

    return replaced(Partition, "_advance_high_watermark", advance_anyway)


def shrink_before_the_answer() -> Switch:
    """The leader no longer waits for a follower that it only proposes to remove. Caught by durability, when that one is elected."""
    original = CommittedPartitionState.shrink

    def shrink(self: CommittedPartitionState, replica_ids: Any, leader_epoch: int, broker_epochs: Any) -> Any:
        change = original(self, replica_ids, leader_epoch, broker_epochs)
        return dataclasses.replace(change, maximal_isr=tuple(each for each in self.isr if each not in replica_ids))

    return replaced(CommittedPartitionState, "shrink", shrink)


def name_the_end_too_early() -> Switch:
    """A new leader names its high watermark as the end before it knows its predecessor's (KIP-207). Caught by monotonic_ends."""
    return replaced(Partition, "check_high_watermark_is_known", lambda self: None)


def trust_a_crashed_disk() -> Switch:
    """A broker that restarts after a power cut stays eligible to lead. Caught by durability."""
    return replaced(cluster_control, "on_broker_crashed", partition_leaders.on_broker_gone)


def claim_after_a_power_cut() -> Switch:
    """A broker whose machine lost its power claims that it has all it wrote. Caught by durability."""
    return replaced(running_file, "_doubt", lambda written, found: "")


@contextmanager
def count_every_kill_as_a_power_cut() -> Iterator[None]:
    """A broker that was killed claims nothing, as in Apache Kafka. Caught by durability, when another one has lost its power.

    And the last known leader is elected: the longest log alone would save what is acknowledged.
    """
    with (
        elect_the_last_known_leader(),
        replaced(running_file, "read", lambda disk, root: running_file.Claim(-1, "nobody believes it")),
    ):
        yield


def elect_the_last_known_leader() -> Switch:
    """The controller elects without a look at the logs, as in Apache Kafka. Caught by durability, when all machines lose their power."""
    return replaced(Recovery, "automatic", lambda self: None)


def acknowledge_before_the_sync() -> Switch:
    """flush.messages has no effect. Caught by durability, when all machines lose their power."""
    return replaced(LogAppender, "_flush_if_due", lambda self: None)


def count_before_the_sync() -> Switch:
    """barnabas.flush.before.ack has no effect. Caught by durability, when all machines lose their power."""
    return replaced(LogConfig, "barnabas_flush_before_ack", property(lambda self: False, lambda self, value: None))


def vote_without_sync() -> Switch:
    """A vote may be lost with the power. Caught by single_leader, or by recovery, when the file is torn."""

    def write(self: QuorumStateFile, state: ElectionState) -> None:
        self._disk.write_file_atomic(self._path, state.to_bytes(), sync=False)

    return replaced(QuorumStateFile, "write", write)


def commit_metadata_alone() -> Switch:
    """The controller's records are committed when it has them itself. Caught by equal_images, or by created_topics."""
    return replaced(quorum, "commit_index", lambda end_offsets: max(end_offsets))


def show_what_is_not_committed() -> Switch:
    """A consumer may read all that the leader has. Caught by the reader, when one leads that does not have it."""
    return showing_all(lambda partition: partition.is_leader)


def fence_after_a_move() -> Switch:
    """A new coordinator counts every producer as initialised once more. Caught by permitted_refusals, when a coordinator moves."""
    original = TransactionCoordinatorShard.on_loaded

    def on_loaded(self: TransactionCoordinatorShard) -> None:
        original(self)
        for found in list(self.transactions.values()):
            if found.state is TransactionState.ONGOING:
                later = dataclasses.replace(found, producer_epoch=found.producer_epoch + 1)
                self.transactions[found.transactional_id] = later

    return replaced(TransactionCoordinatorShard, "on_loaded", on_loaded)


@contextmanager
def assign_what_others_own() -> Iterator[None]:
    """A member is assigned a partition before its former owner has given it up. Caught by one_owner."""

    def own(self: ConsumerGroup, assignment: Any, epoch: int) -> None:
        for topic_id, partitions in assignment.items():
            self._partition_epochs.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))

    with (
        replaced(Reconciliation, "_is_free", lambda self, topic_id, partition: True),
        # Which would notice.
        replaced(ConsumerGroup, "_own", own),
    ):
        yield


def commit_at_any_epoch() -> Switch:
    """A member may commit at an epoch of its past. Caught by one_owner, when it has lost the partition."""

    def validate(self: ConsumerGroup, committer: Any) -> None:
        return None

    return replaced(ConsumerGroup, "validate_offset_commit", validate)


def commit_in_any_generation() -> Switch:
    """A classic member may commit in a generation of its past. Caught by one_owner, when it has lost the partition."""

    def validate(self: ClassicGroup, committer: Any) -> None:
        return None

    return replaced(ClassicGroup, "validate_offset_commit", validate)


def rebalance_without_waiting() -> Switch:
    """A classic group begins its next generation when one member has joined it, without the others. Caught by one_owner."""
    return replaced(ClassicGroup, "has_all_members_joined", property(lambda self: self.awaiting_join_count > 0))


@contextmanager
def delete_records_alone() -> Iterator[None]:
    """A leader acknowledges DeleteRecords for itself, and no follower hears of it. Caught by log_start, when another one leads."""

    def append_fetched(log: PartitionLog, data: Any, leader_epoch: int) -> bool:
        data.log_start_offset = min(data.log_start_offset, log.log_start_offset)
        return bool(_APPEND_FETCHED(log, data, leader_epoch))

    with (
        replaced(Partition, "low_watermark", property(lambda self: self.log.log_start_offset)),
        replaced(replica_fetcher, "append_fetched", append_fetched),
    ):
        yield


def delete_one_segment_too_many() -> Switch:
    """Retention deletes the segment that the log begins in. Caught by log_start."""
    original: Any = vars(partition_log)["count_deletable"]

    def count(segments: Any, config: Any, **known: Any) -> int:
        found = original(segments, config, **known)
        return min(found + 1, len(segments) - 1) if found else 0

    return replaced(partition_log, "count_deletable", count)


def abort_without_asking() -> Switch:
    """A leader aborts each silent transaction that it remembers, and asks no coordinator. Caught by whole_transactions."""

    async def known(self: CoordinatorSurvey, producer_ids: Collection[int]) -> dict[int, KnownTransaction]:
        return {}

    return replaced(CoordinatorSurvey, "known", known)


def leave_what_hangs() -> Switch:
    """A leader keeps the transactions that no coordinator knows, as in Apache Kafka. Caught by whole_transactions, or recovery."""
    return replaced(HangingTransactions, "look", lambda self: None)


@contextmanager
def trust_an_empty_directory() -> Iterator[None]:
    """A node claims to have kept everything, though a directory is new, and the controller does not look. Caught by durability."""

    def epoch(self: LogDirectories) -> int:
        return max((each.broker_epoch for each in self.online), default=UNKNOWN_EPOCH)

    def put(self: LogDirectories, epoch: int) -> None:
        for each in self.online:
            each.broker_epoch = epoch

    def is_on_another_disk(view: ControllerView, partition: PartitionRegistration, broker_id: int) -> bool:
        return False

    claims = replaced(LogDirectories, "broker_epoch", property(epoch, put))
    with claims, replaced(assign_replicas, "_is_on_another_disk", is_on_another_disk):
        yield


LASTING_CUT, TRIMMER = "lasting cut", "trimmer"
BUGS: dict[str, Bug] = {
    "commit_alone": Bug(commit_alone, 6, "kill_leader_with_a_new_end"),
    "elect_anybody": Bug(elect_anybody, 24, "forget_in_short_isr"),
    "never_truncate": Bug(never_truncate, 60),
    "count_before_the_check": Bug(count_before_the_check, 6, "cut_leader_from_controller"),
    "vote_twice": Bug(vote_twice, 60),
    "keep_former_metadata": Bug(keep_former_metadata, 12),
    "join_too_early": Bug(join_too_early, 18, "kill_at_join"),
    "never_shrink": Bug(never_shrink, 6, LASTING_CUT),
    "forget_the_vote": Bug(forget_the_vote, 40, "crash_voter"),
    "shrink_before_the_answer": Bug(shrink_before_the_answer, 30, "cut_leader_from_controller"),
    "commit_below_min_isr": Bug(commit_below_min_isr, 15, "leave_leader_alone"),
    "trust_a_crashed_disk": Bug(trust_a_crashed_disk, 60, "forget_in_short_isr"),
    "answer_before_the_commit": Bug(answer_before_the_commit, 36, "move_coordinator_twice"),
    "vote_without_sync": Bug(vote_without_sync, 30, "crash_voter"),
    "answer_from_the_former_shard": Bug(answer_from_the_former_shard, 12, "move_coordinator_back"),
    "name_the_end_too_early": Bug(name_the_end_too_early, 6, "kill_leader_with_a_new_end"),
    "claim_after_a_power_cut": Bug(claim_after_a_power_cut, 30, "forget_in_short_isr"),
    "trust_an_empty_directory": Bug(trust_an_empty_directory, 6, "lose_directory_of_the_last_follower"),
    "count_every_kill_as_a_power_cut": Bug(count_every_kill_as_a_power_cut, 30, "kill_the_others"),
    "elect_the_last_known_leader": Bug(elect_the_last_known_leader, 12, "spare_one_disk"),
    "acknowledge_before_the_sync": Bug(acknowledge_before_the_sync, 12, "cut_all_power"),
    "show_what_is_not_committed": Bug(show_what_is_not_committed, 12, "kill_leader_with_a_new_end"),
    "fence_after_a_move": Bug(fence_after_a_move, 24, "move_coordinator_back"),
    "count_before_the_sync": Bug(count_before_the_sync, 12, "cut_all_power"),
    "assign_what_others_own": Bug(assign_what_others_own, 24),
    "commit_at_any_epoch": Bug(commit_at_any_epoch, 24),
    "delete_records_alone": Bug(delete_records_alone, 24, TRIMMER),
    "delete_one_segment_too_many": Bug(delete_one_segment_too_many, 24, TRIMMER),
    "commit_in_any_generation": Bug(commit_in_any_generation, 24),
    "rebalance_without_waiting": Bug(rebalance_without_waiting, 24),
    "abort_without_asking": Bug(abort_without_asking, 6, "kill_leader_in_transactions"),
    "leave_what_hangs": Bug(leave_what_hangs, 12, "black_out"),
    "commit_metadata_alone": Bug(commit_metadata_alone, 12, "leave_controller_alone"),
    **RARE_WORLDS,
    **SIDE_TOPICS,
    **TUNING,
}
