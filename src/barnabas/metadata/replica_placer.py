"""The placement of new partitions' replicas.

Brokers form a ring in which racks alternate. Each partition starts one place further, so leaders spread evenly; its
replicas take the following places, so they spread over racks. Fenced brokers may hold followers but come last in a partition's
list, since the first is its preferred leader. A broker whose directories are all cordoned gets no new replica, except from a client that
names its replicas itself.

Source: Kafka's `StripedReplicaPlacer` (the idea; the order of draws from the random generator is our own).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.controller_view import ApiError
from barnabas.protocol.errors import ErrorCode


class Placement(NamedTuple):
    """The replicas of each new partition, preferred leader first; or the reason why the placer found no replicas."""

    assignments: list[tuple[int, ...]]
    error: ApiError | None = None


def _ring(brokers: Sequence[BrokerRegistration], generator: random.Random) -> list[BrokerRegistration]:
    """Return the brokers so that neighbours are of different racks as far as possible, starting anywhere."""
    racks: dict[str | None, list[BrokerRegistration]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker)
    groups = [racks[rack] for rack in sorted(racks, key=lambda rack: (rack is None, rack or ""))]
    for group in groups:
        start = generator.randrange(len(group))
        group[:] = group[start:] + group[:start]
    ring: list[BrokerRegistration] = []
    for turn in range(max(map(len, groups))):
        ring += [group[turn] for group in groups if turn < len(group)]
    return ring


def place(
    brokers: Sequence[BrokerRegistration], partitions: int, replication_factor: int, generator: random.Random
) -> Placement:
    """Choose replicas for new partitions.

    Args:
        brokers: every registered broker, fenced ones too.
    """
    brokers = [broker for broker in brokers if broker.takes_new_replicas]
    prefix = f"Unable to replicate the partition {replication_factor} time(s): "
    usable = [broker for broker in brokers if not (broker.fenced or broker.in_controlled_shutdown)]
    if not usable:
        why = "All brokers are currently fenced, or have all their log directories cordoned."
        return Placement([], ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, prefix + why))
    if replication_factor > len(brokers):
        why = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
        return Placement([], ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, prefix + why))
    if len(brokers) == 1:
        return Placement([(brokers[0].id,)] * partitions)
    active, fenced = _ring(usable, generator), [broker for broker in brokers if broker not in usable]
    offset = generator.randrange(len(active))
    assignments = []
    for partition in range(partitions):
        start = (offset + partition) % len(active)
        turned = active[start:] + active[:start] + fenced
        assignments.append(tuple(broker.id for broker in turned[:replication_factor]))
    return Placement(assignments)
