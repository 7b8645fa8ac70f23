"""What a seed of a cluster means: how many of which clients and faults, and the settings of the nodes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from barnabas.log.log_config import INT64_MAX
from tests.simulation.aging import BY_SIZE, BY_TIME, SLOW_CHECK_MS
from tests.simulation.aimed_faults import AIMED, BLACK_OUT, IN_TRANSACTIONS, LOST_DIRECTORY, SPARING, UNCLEAN
from tests.simulation.cluster_faults import KINDS, OF_DIRECTORIES, OF_SEVERAL
from tests.simulation.far_reader import RACKS, SETTINGS
from tests.simulation.keyed import CLEANER
from tests.simulation.owner import SESSION_SECONDS
from tests.simulation.share_member import LOCK_SECONDS

LEAST_TO_AIM = 3
"""The nodes that aimed faults need: with fewer, nobody is left to be elected."""
CUTTING = frozenset({"cut", "isolate", "slow_way", "pause"})
"""The faults of one kind that keep metadata from a broker that serves."""
AIMED_SECONDS = 40.0
"""Long enough for two or three aimed faults."""
SMALL_AIMED_SECONDS = 12.0
"""Long enough for one aimed fault, in a small world."""
LONGER_AIMED_SECONDS = {"move_coordinator_back": 24.0, "move_coordinator_twice": 24.0}
"""The aimed faults that take longer."""
LARGE_RATE = 0.04
"""How many of the worlds are large: they have everything at once, and cost ten times as much as a small one."""
SPARING_RATE = 0.08
"""How many of the seeds without another aimed fault have the one that spares a disk."""
LONG_TRANSACTIONS_RATE = 0.06
"""How many of them have transactions that are open for seconds. In one half all machines lose their power, and what was not synced."""
MEMBERS_RATE = 0.25
"""How many of the worlds have a consumer group whose members come and go."""
CLASSIC_RATE = 0.15
"""How many have one of the classic protocol."""
TRIMMER_RATE = 0.15
"""How many have a client that deletes records."""
REGISTRARS_RATE = 0.15
"""How many have clients that create and delete the same topic."""
TUNER_RATE = 0.12
"""How many have clients that change settings, partition counts, quotas and a feature level, and a producer with a quota."""
LONE_CONTROLLER = "leave_controller_alone"
TUNER_OF_LONE_CONTROLLERS_RATE = 0.5
"""How many of those where a controller writes alone have them: there a change that is acknowledged too early is lost."""
SHARE_RATE = 0.15
"""How many have a share group."""
RACKS_RATE = 0.15
"""How many have racks, and a reader that reads from followers and asks for offsets by time."""
UNCLEAN_RATE = 0.2
"""How many of those without another aimed fault, where no disk forgets, have a topic that may elect a leader which lacks records."""
DIRECTORIES_RATE = 0.12
"""How many of those without an aimed fault and a moving voter have nodes with three directories, of which one fails."""
LOST_DIRECTORY_RATE = 0.3
"""How many of these have a follower that loses a directory while it is the last one in sync."""
DIRECTORIES_SECONDS = 16.0
"""Longer than it takes to judge what follows the failure of one."""
ROOTS = ("/data", "/data2", "/data3")
"""Their directories; the metadata log is in the first."""
FORGETTING = frozenset({"lose_power", "wipe", "failing_disk", "full_disk"})
"""The faults after which a topic with one replica in sync may lose records, or have nobody who surely has all of them."""
COMPACTION_RATE = 0.08
"""How many have a topic that is compacted."""
RETENTION_RATE = 0.1
"""How many have a topic whose old records are deleted."""
WIDE_RATE = 0.15
"""How many have a producer that writes to many new partitions, with several requests in flight."""


@dataclass(frozen=True)
class ClusterPlan:
    """What a seed means."""

    seed: int
    nodes: int
    is_large: bool
    has_own_controller: bool
    partitions: int
    internal_partitions: int
    producers: int
    committers: int
    transactors: int
    fault_kinds: tuple[str, ...]
    fault_every_seconds: float
    fault_seconds: float
    longest_fault_seconds: float
    session_timeout_ms: int
    lag_time_ms: int
    idle_interval_ms: int
    executor_seconds: float
    sync_seconds: float
    pause_seconds: float
    commit_seconds: float
    watch_seconds: float
    create_every_seconds: float
    has_mover: bool
    has_recreator: bool
    has_moving_voters: bool
    stops_in_order: bool
    snapshot_bytes: int
    aimed: str | None
    has_lasting_cut: bool
    members: int
    """Of the consumer group that shares all partitions."""
    classic_members: int
    """Of the classic group that shares them too."""
    has_trimmer: bool
    linger_seconds: float
    registrars: int
    """Clients that create and delete the same topic."""
    is_tuned: bool
    """Whether clients change settings, partition counts, quotas and a feature level."""
    share_members: int
    """Of the share group that reads the first topic."""
    has_racks: bool
    """Whether brokers stand in racks, and a reader is sent to followers."""
    compacts: bool
    """Whether there is a topic that is compacted."""
    has_directories: bool
    """Whether each node has several `log.dirs`."""
    retention: str
    """The setting that deletes the old records of a topic; empty if there is no such topic."""
    wide_partitions: int
    """Of a topic that is created when the faults begin, and whose producer has several requests in flight; 0 for no such topic."""

    @staticmethod
    def draw(seed: int, nodes: int = 3) -> ClusterPlan:
        """Return what a seed means."""
        plan = ClusterPlan.drawn(seed, nodes)
        unclean = random.Random(f"unclean {seed}")
        is_free = plan.aimed is None and not plan.has_moving_voters and nodes >= LEAST_TO_AIM
        directories = random.Random(f"directories {seed}")
        if is_free and directories.random() < DIRECTORIES_RATE:
            plan = plan.with_directories(directories)
            is_lost = random.Random(f"lost directory {seed}").random() < LOST_DIRECTORY_RATE
            return replace(plan, aimed=LOST_DIRECTORY, fault_kinds=()) if is_lost else plan
        is_free = is_free and not FORGETTING.intersection(plan.fault_kinds)
        return plan.with_unclean_elections() if is_free and unclean.random() < UNCLEAN_RATE else plan

    @staticmethod
    def drawn(seed: int, nodes: int) -> ClusterPlan:
        """Return what a seed means without an aimed fault that came later.

        Most worlds are small: few clients, which do little, one or two kinds of faults, and short times, so that the same happens in fewer
        seconds. Many small worlds find a bug sooner than one large world, and show it more plainly. A few worlds are large, because some
        bugs need many things at once.
        """
        rng = random.Random(f"cluster {seed}")
        is_large = rng.random() < LARGE_RATE
        plan = ClusterPlan.large(seed, nodes, rng) if is_large else ClusterPlan.small(seed, nodes, rng)
        # Dice of their own: the seeds keep their other meaning.
        members = random.Random(f"members {seed}")
        plan = replace(plan, members=members.choice((2, 3)) if members.random() < MEMBERS_RATE else 0)
        plan = replace(plan, classic_members=members.choice((2, 3)) if members.random() < CLASSIC_RATE else 0)
        plan = replace(plan, has_trimmer=members.random() < TRIMMER_RATE)
        rare = random.Random(f"second floor {seed}")
        plan = replace(plan, share_members=rare.choice((2, 3)) if rare.random() < SHARE_RATE else 0)
        registrars = random.Random(f"registrars {seed}")
        plan = replace(plan, registrars=3 if registrars.random() < REGISTRARS_RATE else 0)
        plan = replace(plan, is_tuned=random.Random(f"tuner {seed}").random() < TUNER_RATE)
        plan = replace(plan, wide_partitions=rare.choice((4, 9)) if rare.random() < WIDE_RATE else 0)
        plan = replace(plan, has_racks=nodes > 1 and rare.random() < RACKS_RATE)
        aging = random.Random(f"retention {seed}")
        plan = replace(plan, retention=aging.choice((BY_TIME, BY_SIZE)) if aging.random() < RETENTION_RATE else "")
        plan = replace(plan, compacts=random.Random(f"compaction {seed}").random() < COMPACTION_RATE)
        if nodes < LEAST_TO_AIM:
            return plan
        # The mover may leave a partition with two replicas. It takes no writes if one of them is cut off.
        plan = replace(plan, has_lasting_cut=not plan.has_mover and rng.random() < 0.25)
        if rng.random() < 0.4:
            return plan.aimed_at(rng.choice(AIMED), rng)
        if rng.random() < 0.15 and nodes == LEAST_TO_AIM:
            return plan.with_moving_voters()
        other = rng.random()
        # The disk that is spared must have a replica of every partition.
        if other < SPARING_RATE and nodes == plan.replicas:
            return plan.aimed_at(SPARING, rng)
        return plan.with_long_transactions(rng) if other > 1 - LONG_TRANSACTIONS_RATE else plan

    def with_moving_voters(self) -> ClusterPlan:
        """Return a plan whose three nodes are all controllers, which leave the quorum and join it again."""
        # While there are two voters, neither may lose its disk: the other one could never commit anything again.
        kinds = tuple(kind for kind in self.fault_kinds if kind != "wipe")
        return replace(self, has_own_controller=False, has_moving_voters=True, fault_kinds=kinds)

    @staticmethod
    def small(seed: int, nodes: int, rng: random.Random) -> ClusterPlan:
        session_timeout_ms = rng.choice((1500, 3000))
        return ClusterPlan(
            seed=seed,
            nodes=nodes,
            is_large=False,
            has_own_controller=nodes > 1 and rng.random() < 0.15,
            partitions=rng.choice((1, 1, 2)),
            internal_partitions=rng.choice((1, 1, 3)),
            producers=rng.choice((1, 1, 2)),
            committers=rng.choice((1, 1, 2)),
            transactors=rng.choice((0, 0, 1)),
            fault_kinds=tuple(rng.sample(_kinds(nodes), rng.choice((1, 1, 2)))),
            fault_every_seconds=rng.choice((0.3, 1.0, 3.0)),
            fault_seconds=rng.choice((2.0, 4.0, 6.0)),
            longest_fault_seconds=1.5 * session_timeout_ms / 1000,
            session_timeout_ms=session_timeout_ms,
            lag_time_ms=rng.choice((500, 3000)),
            idle_interval_ms=2000,
            executor_seconds=rng.choice((0.0, 0.0, 0.01)),
            sync_seconds=rng.choice((0.0, 0.0, 0.005)),
            pause_seconds=rng.choice((0.2, 1.0)),
            commit_seconds=rng.choice((0.3, 1.0)),
            watch_seconds=0.5,
            create_every_seconds=rng.choice((1.0, 4.0)),
            has_mover=nodes > 1 and rng.random() < 0.25,
            has_recreator=rng.random() < 0.25,
            has_moving_voters=False,
            stops_in_order=rng.random() < 0.2,
            snapshot_bytes=rng.choice((3000, 1 << 20)),
            aimed=None,
            has_lasting_cut=False,
            members=0,
            classic_members=0,
            has_trimmer=False,
            linger_seconds=0.0,
            registrars=0,
            is_tuned=False,
            share_members=0,
            wide_partitions=0,
            has_racks=False,
            compacts=False,
            has_directories=False,
            retention="",
        )

    @staticmethod
    def large(seed: int, nodes: int, rng: random.Random) -> ClusterPlan:
        return ClusterPlan(
            seed=seed,
            nodes=nodes,
            is_large=True,
            has_own_controller=nodes > 1 and rng.random() < 0.2,
            partitions=rng.randrange(1, 4),
            internal_partitions=3,
            producers=rng.randrange(1, 4),
            committers=rng.randrange(1, 3),
            transactors=rng.choice((0, 1, 2)),
            # A few kinds in each world: more would hide the effect of a single one.
            fault_kinds=tuple(rng.sample(_kinds(nodes), rng.randrange(1, 4))),
            fault_every_seconds=rng.choice((0.5, 3.0, 10.0)),
            fault_seconds=rng.choice((5.0, 15.0, 40.0)),
            longest_fault_seconds=12.0,
            session_timeout_ms=rng.choice((3000, 9000)),
            lag_time_ms=rng.choice((1500, 10_000)),
            idle_interval_ms=500,
            executor_seconds=rng.choice((0.0, 0.0, 0.01)),
            sync_seconds=rng.choice((0.0, 0.0, 0.005)),
            pause_seconds=rng.choice((0.05, 0.5, 0.5)),
            commit_seconds=0.2,
            watch_seconds=0.2,
            create_every_seconds=4.0,
            has_mover=nodes > 1 and rng.random() < 0.5,
            has_recreator=rng.random() < 0.5,
            has_moving_voters=False,
            stops_in_order=True,
            snapshot_bytes=rng.choice((3000, 1 << 20)),
            aimed=None,
            has_lasting_cut=False,
            members=0,
            classic_members=0,
            has_trimmer=False,
            linger_seconds=0.0,
            registrars=0,
            is_tuned=False,
            share_members=0,
            wide_partitions=0,
            has_racks=False,
            compacts=False,
            has_directories=False,
            retention="",
        )

    def aimed_at(self, aimed: str, rng: random.Random) -> ClusterPlan:
        """Return a plan with an aimed fault over and over, and now and then a fault of one kind."""
        lone = random.Random(f"lone controller {self.seed}")
        is_tuned = self.is_tuned or (aimed == LONE_CONTROLLER and lone.random() < TUNER_OF_LONE_CONTROLLERS_RATE)
        others = self.fault_kinds[:1] if rng.random() < 0.3 else ()
        return replace(
            self,
            is_tuned=is_tuned,
            aimed=aimed,
            fault_kinds=others,
            fault_every_seconds=10.0,
            fault_seconds=AIMED_SECONDS if self.is_large else LONGER_AIMED_SECONDS.get(aimed, SMALL_AIMED_SECONDS),
            # Slow commits, so that the fault meets a coordinator before the next one.
            commit_seconds=1.0,
            has_mover=False,
        )

    def with_directories(self, rng: random.Random) -> ClusterPlan:
        """Return a plan whose nodes have three directories each, of which one fails, or is lost, and perhaps another fault."""
        others = tuple(kind for kind in self.fault_kinds if kind not in FORGETTING | CUTTING)
        kinds = (rng.choice(OF_DIRECTORIES), *others[: rng.choice((0, 1))])
        return replace(
            self, has_directories=True, fault_kinds=kinds, fault_seconds=max(self.fault_seconds, DIRECTORIES_SECONDS)
        )

    def with_unclean_elections(self) -> ClusterPlan:
        """Return a plan in which leaders die that have written alone, beside its other faults."""
        return replace(self, aimed=UNCLEAN, fault_seconds=max(self.fault_seconds, SMALL_AIMED_SECONDS))

    def with_long_transactions(self, rng: random.Random) -> ClusterPlan:
        """Return a plan in which transactions are open for seconds, and all machines lose their power, or a leader dies."""
        plan = replace(self.aimed_at(rng.choice((BLACK_OUT, IN_TRANSACTIONS)), rng), fault_kinds=())
        plan = replace(
            plan,
            transactors=2,
            members=0,
            classic_members=0,
            has_trimmer=False,
            has_recreator=False,
            has_lasting_cut=False,
        )
        return (
            replace(
                plan,
                committers=0,
                share_members=0,
                wide_partitions=0,
                has_racks=False,
                compacts=False,
                retention="",
                linger_seconds=4.0,
            )
            if plan.forgets
            else replace(plan, linger_seconds=6.0)
        )

    @property
    def elects_uncleanly(self) -> bool:
        """Whether it has a topic that may elect a leader which lacks records."""
        return self.aimed == UNCLEAN

    @property
    def tunes_lone_controllers(self) -> bool:
        """Whether clients change settings while a controller writes what is lost."""
        return self.is_tuned and self.aimed == LONE_CONTROLLER

    @property
    def forgets(self) -> bool:
        """Whether acknowledged records may be lost, so that nobody judges what readers see."""
        return self.aimed == BLACK_OUT

    @property
    def cuts_nodes_off(self) -> bool:
        """Whether a broker may go on without the controllers for a while."""
        return bool(self.aimed or self.has_lasting_cut or CUTTING.intersection(self.fault_kinds))

    @property
    def flushes(self) -> bool:
        """Whether what is acknowledged is on a disk."""
        return self.aimed == "cut_all_power"

    @property
    def flushes_before_ack(self) -> bool:
        """Whether `barnabas.flush.before.ack` sees to that, in place of `flush.messages`."""
        return self.seed % 2 == 1

    @property
    def replicas(self) -> int:
        return min(3, self.nodes)

    def own(self, node_id: int) -> dict[str, str]:
        """Return the settings of one node: where it stands, and how often it deletes what is old."""
        rack = {"broker.rack": RACKS[node_id % len(RACKS)]} if self.has_racks else {}
        is_slow = self.retention and node_id % 2 == 0
        return rack | ({"log.retention.check.interval.ms": SLOW_CHECK_MS} if is_slow else {})

    def properties(self) -> dict[str, str]:
        """Return the settings of every node."""
        replicas, in_sync = str(self.replicas), str(max(1, self.replicas - 1))
        short = {"log.roll.ms": "1500", "log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "500"}
        directories = {"log.dirs": ",".join(ROOTS), "replica.high.watermark.checkpoint.interval.ms": "1000"}
        return {
            **(directories if self.has_directories else {}),
            **(short if self.has_trimmer or self.retention else {}),
            **(SETTINGS if self.has_racks else {}),
            **(CLEANER if self.compacts else {}),
            "offsets.topic.num.partitions": str(self.internal_partitions),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": str(self.internal_partitions),
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.num.partitions": str(self.internal_partitions),
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
            "min.insync.replicas": in_sync,
            "log.index.interval.bytes": "500",
            "log.index.size.max.bytes": "800",
            "group.initial.rebalance.delay.ms": "0",
            "broker.session.timeout.ms": str(self.session_timeout_ms),
            "broker.heartbeat.interval.ms": str(self.session_timeout_ms // (6 if self.is_large else 4)),
            "metadata.max.idle.interval.ms": str(self.idle_interval_ms),
            "replica.lag.time.max.ms": str(self.lag_time_ms),
            # With few bytes snapshots are written often, and the log before them is deleted: a node that has fallen behind needs one.
            "metadata.log.max.record.bytes.between.snapshots": str(self.snapshot_bytes),
            # Larger than any batch of the controller's, as Kafka's lower bound of 8 MB is.
            "internal.metadata.log.segment.bytes": str(max(self.snapshot_bytes, 8_192)),
            "metadata.max.retention.bytes": str(4 * self.snapshot_bytes),
            "group.min.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "group.consumer.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "group.consumer.min.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "group.consumer.heartbeat.interval.ms": "500",
            "group.consumer.min.heartbeat.interval.ms": "500",
            "share.coordinator.snapshot.update.records.per.snapshot": "20",
            "group.share.min.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "group.share.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "group.share.assignment.interval.ms": "0",
            "group.share.initialize.retry.interval.ms": "1000",
            "group.share.min.record.lock.duration.ms": str(int(LOCK_SECONDS * 1000)),
            "group.share.record.lock.duration.ms": str(int(LOCK_SECONDS * 1000)),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(
                1_000 if self.linger_seconds else 10_000
            ),
            # Both ways in which nothing acknowledged may be lost when all machines lose their power.
            "log.flush.interval.messages": "1" if self.flushes and not self.flushes_before_ack else str(INT64_MAX),
            "barnabas.flush.before.ack": str(self.flushes and self.flushes_before_ack).lower(),
        }


def _kinds(nodes: int) -> list[str]:
    """Return the faults that a cluster of so many nodes may have."""
    return [kind for kind in KINDS if nodes > 1 or kind not in OF_SEVERAL]
