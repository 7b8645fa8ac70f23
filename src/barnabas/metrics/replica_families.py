"""The replicas of this broker: what Kafka's ReplicaManager counts, and the rates of throttled replication.

- While a partition's replicas are being reassigned, it is under-replicated if the ISR is smaller than its replicas without those that are
  being added: a copy that has only begun is not missing.
- A partition is reassigning while the metadata names replicas that are being added or removed. The leader counts it.
- The rates have bytes of the partitions in *.replication.throttled.replicas, a second over the quota's window.

Sources: Kafka's `ReplicaManager`, `Partition.isUnderReplicated`, `OngoingReassignmentState`, `ReplicationQuotaManager`; Strimzi's rules
for the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.metrics.exposition import Family, family, labels
from barnabas.metrics.source import PartitionRow
from barnabas.quota.replication_quota_manager import ReplicationQuotaManager

if TYPE_CHECKING:
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.replication.replica_manager import ReplicaManager

__all__ = ["families"]

_MANAGER = "kafka_server_replicamanager_"


def families(replicas: ReplicaManager, rows: Sequence[PartitionRow]) -> Iterator[Family]:
    """Yield every family of the replicas here, and an empty text after each partition."""
    here = led = under = under_min = at_min = reassigning = 0
    for row in rows:
        replica = row.replica
        if replica is not None:
            here += 1
            if replica.is_leader:
                in_sync = len(replica.isr)
                led += 1
                under += _is_under_replicated(row.registration, replica.isr)
                under_min += in_sync < row.min_isr
                at_min += in_sync == row.min_isr
                reassigning += row.registration.is_reassigning
        yield ""
    counts = (
        ("leadercount", "Partitions that this broker leads.", led),
        ("partitioncount", "Replicas on this broker.", here),
        ("underreplicatedpartitions", "Partitions led here that lack an in-sync replica.", under),
        (
            "underminisrpartitioncount",
            "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
            under_min,
        ),
        (
            "atminisrpartitioncount",
            "Partitions led here with just as many in-sync replicas as min.insync.replicas.",
            at_min,
        ),
        ("reassigningpartitions", "Partitions led here whose replicas are being moved.", reassigning),
    )
    for name, text, count in counts:
        yield family(_MANAGER + name, "gauge", text, [("", count)])
    changes = None if replicas.replicated_partitions is None else replicas.replicated_partitions.isr_changes
    for name, text, count in (
        ("isrshrinks", "Times that followers left an ISR led here.", 0 if changes is None else changes.shrinks),
        ("isrexpands", "Times that a follower joined an ISR led here.", 0 if changes is None else changes.expands),
    ):
        for spelling in (name, f"{name}persec"):
            yield family(f"{_MANAGER}{spelling}_total", "counter", text, [("", count)])
    yield family(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "gauge",
        "Data directories whose disk takes no writes.",
        [("", sum(each.failure.is_offline for each in replicas.log_manager.directories))],
    )
    yield family(
        "kafka_log_logmanager_cordonedlogdirectorycount",
        "gauge",
        "Data directories that get no new replica (cordoned.log.dirs).",
        [("", sum(each.is_cordoned for each in replicas.log_manager.directories))],
    )
    yield from _volume(replicas)
    for side, quota in (("leader", replicas.leader_quota), ("follower", replicas.follower_quota)):
        if isinstance(quota, ReplicationQuotaManager):
            text = f"Bytes a second of throttled replicas, counted as {side}."
            yield family(f"kafka_server_{side}replication_byte_rate", "gauge", text, [("", quota.byte_rate())])


def _volume(replicas: ReplicaManager) -> Iterator[Family]:
    volumes = list(replicas.describe_volumes())
    totals = [(directory.root_dir, total) for directory, total, _ in volumes]
    for name, counts in (("total", totals), ("free", [(directory.root_dir, free) for directory, _, free in volumes])):
        # A volume that cannot be asked has no sample.
        samples = [(labels({"directory": root}), count) for root, count in counts if count >= 0]
        text = f"{name.capitalize()} bytes of the volume that holds a data directory."
        yield family(f"barnabas_log_directory_{name}_bytes", "gauge", text, samples)


def _is_under_replicated(registration: PartitionRegistration, isr: Sequence[int]) -> bool:
    wanted = [each for each in registration.replicas if each not in registration.adding_replicas]
    return len(isr) < len(wanted)
