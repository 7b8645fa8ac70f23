"""Faults of a cluster that only tests can switch on, one for each way in which replication and the quorum may go wrong.

They are to `cluster` what `deliberate_bugs` are to `one_broker`. `test_cluster_bugs.py` demands that each is caught within the number
of seeds that stands beside it, and by the checker that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from barnabas.coordinator.shard_loader import ShardLoader
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.partition_change_builder import PartitionChangeBuilder
from barnabas.raft import unattached
from barnabas.replication import fetch_reader, follower_log
from barnabas.replication.followers import Followers
from barnabas.replication.partition import Partition
from barnabas.replication.replicated_partitions import ReplicatedPartitions
from barnabas.server.broker import BrokerServer
from barnabas.server.metadata_log import QuorumStateFile
from tests.simulation.deliberate_bugs import replaced


@contextmanager
def commit_alone() -> Iterator[None]:
    """The high watermark is the leader's own end. Caught by durability, when the leader dies."""
    with replaced(Followers, "smallest_end", lambda self, leader_end_offset, maximal_isr: leader_end_offset):
        yield


@contextmanager
def elect_anybody() -> Iterator[None]:
    """Any replica in service may lead, in sync or not. Caught by durability."""

    def may_lead(self: Any, replica: int) -> bool:
        return bool(self._rules.is_acceptable(replica))

    with replaced(PartitionChangeBuilder, "_may_lead", may_lead):
        yield


@contextmanager
def never_truncate() -> Iterator[None]:
    """A follower keeps what its leader does not have. Caught by identical_replicas, or by progress."""

    def keep(log: PartitionLog, offset: int) -> None:
        return None

    with replaced(follower_log, "_truncate", keep):
        yield


@contextmanager
def count_before_the_check() -> Iterator[None]:
    """A follower that diverges counts as one that has the records. Caught by durability, or by identical_replicas."""
    original = fetch_reader._Reading.read

    def read(self: Any, wanted: Any, partition: Partition) -> Any:
        if self._replica_id >= 0 and partition.followers is not None and self._replica_id in partition.followers:
            partition.update_follower(self._replica_id, wanted.fetch_offset, wanted.log_start_offset, -1)
        return original(self, wanted, partition)

    with replaced(fetch_reader._Reading, "read", read):
        yield


@contextmanager
def join_too_early() -> Iterator[None]:
    """A follower joins the in-sync replicas wherever its log ends. Caught by durability."""
    with replaced(Followers, "may_join", lambda self, replica_id, from_offset: replica_id in self):
        yield


@contextmanager
def never_shrink() -> Iterator[None]:
    """A follower that lags stays in the in-sync replicas. Caught by progress, if a node is out of reach of the leader alone."""
    with replaced(ReplicatedPartitions, "_shrink", lambda self, partition: None):
        yield


@contextmanager
def forget_the_vote() -> Iterator[None]:
    """A node that restarts does not know whom it voted for, nor in which epoch. Caught by single_leader."""
    with replaced(QuorumStateFile, "write", lambda self, state: None):
        yield


@contextmanager
def vote_twice() -> Iterator[None]:
    """A node gives its vote to everybody who asks. Caught by single_leader."""

    def grants(candidate: Any, voted: Any, leader_id: int, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return True

    with replaced(unattached, "grants_without_leader", grants):
        yield


@contextmanager
def answer_before_the_commit() -> Iterator[None]:
    """A coordinator that has read its log answers from records that are not committed. Caught by whole_transactions."""
    with replaced(ShardLoader, "_is_committed", lambda self, context: True):
        yield


@contextmanager
def keep_former_metadata() -> Iterator[None]:
    """One change of metadata in five reaches no replica. Caught by progress, or by durability."""
    original = BrokerServer._on_metadata
    count = 0

    def on_metadata(self: BrokerServer, delta: Any, image: Any) -> None:
        nonlocal count
        count += 1
        if count % 5 == 0 and self.image.provenance.offset >= 0:
            self.image = image
            return
        original(self, delta, image)

    with replaced(BrokerServer, "_on_metadata", on_metadata):
        yield


Switch = Callable[[], AbstractContextManager[None]]

BUGS: dict[str, tuple[Switch, int]] = {
    "commit_alone": (commit_alone, 10),
    "elect_anybody": (elect_anybody, 10),
    "never_truncate": (never_truncate, 60),
    "count_before_the_check": (count_before_the_check, 20),
    "vote_twice": (vote_twice, 20),
    "keep_former_metadata": (keep_former_metadata, 10),
}
"""Each fault, and within how many seeds it is caught."""

NOT_CAUGHT_YET: dict[str, tuple[Switch, int]] = {
    "join_too_early": (join_too_early, 0),
    "never_shrink": (never_shrink, 0),
    "forget_the_vote": (forget_the_vote, 0),
    "answer_before_the_commit": (answer_before_the_commit, 0),
}
"""Faults that a few dozen seeds do not show: the runs must be made harder for the nodes, until they move up."""
