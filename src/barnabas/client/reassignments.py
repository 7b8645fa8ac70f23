"""Replicas that move to other brokers: begin, list, and wait until they have moved.

The controller adds the new replicas to a partition, waits until all are in sync, and removes the old ones. Another order of the same
replicas ends immediately. A reassignment that has begun continues by itself, even if the client ends.

Sources: AlterPartitionReassignments (45), ListPartitionReassignments (46); KIP-455.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.outcome import outcome_of
from barnabas.client.partition_descriptions import describe_partitions
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_LOOKS_AT_THE_END = 8


class Reassignment(NamedTuple):
    """A partition whose replicas move; `replicas` has the added and the removed ones too."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def before(self) -> list[int]:
        """The replicas that the partition had, and has again if the move is cancelled."""
        return [each for each in self.replicas if each not in self.adding]


class Stalled(Exception):
    """Nothing moves any longer; `waits` names the partitions that wait, and the brokers that each waits for."""

    def __init__(self, waits: Mapping[TopicPartition, list[int]]) -> None:
        super().__init__(f"{len(waits)} reassignments stand still")
        self.waits = waits


class Cancelled(Exception):
    """Somebody ended moves; what was waiting for them has not begun.

    Attributes:
        partitions: that have other replicas than they were to get.
        moved: how many partitions have moved.
        waiting: how many were not begun.
    """

    def __init__(self, partitions: Sequence[TopicPartition], moved: int, waiting: int) -> None:
        super().__init__(f"{len(partitions)} reassignments were cancelled")
        self.partitions, self.moved, self.waiting = partitions, moved, waiting


def list_reassignments(cluster: Cluster) -> dict[TopicPartition, Reassignment]:
    """Return the partitions whose replicas are being moved."""

    def ask() -> dict[TopicPartition, Reassignment]:
        connection = cluster.connection(cluster.controller())
        response = connection.request(messages.ListPartitionReassignmentsRequest(timeout_ms=cluster.broker_timeout_ms))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                list(each.replicas), list(each.adding_replicas), list(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return cluster.retry(ask)


def alter_reassignments(
    cluster: Cluster, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, KafkaError | None]:
    """Begin to give partitions other replicas, the preferred leader first; None for each that has begun.

    Replicas None end a reassignment: the partition has the replicas again that it had before.
    """
    request_class = messages.AlterPartitionReassignmentsRequest

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        topics = [
            request_class.ReassignableTopic(
                name=name,
                partitions=[
                    request_class.ReassignablePartition(
                        partition_index=index, replicas=None if replicas is None else list(replicas)
                    )
                    for index in indexes
                    for replicas in [wanted[TopicPartition(name, index)]]
                ],
            )
            for name, indexes in by_topic(batch).items()
        ]
        response = connection.request(request_class(timeout_ms=cluster.broker_timeout_ms, topics=topics))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): outcome_of(each.error_code, each.error_message)
            for topic in response.responses
            for each in topic.partitions
        }

    return cluster.ask_each(wanted, cluster.to_controller, ask)


def reassign(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, Sequence[int]],
    *,
    at_once: int,
    ended: Callable[[int], object] = lambda count: None,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[TopicPartition, KafkaError | None]:
    """Give partitions other replicas, and return when the new ones are in sync and the old ones are gone.

    Args:
        at_once: how many partitions move at the same time.
        ended: called with the number of reassignments that ended.
        sleep: pauses between two looks.

    Returns:
        None for each partition that moved, and the error of each whose move did not begin.

    Raises:
        Cancelled: somebody ended moves. Those that go on at that time are waited for first.
        Stalled: no partition has moved for the cluster's `timeout_ms`, and brokers that some of them need do not serve.
    """
    outcomes: dict[TopicPartition, KafkaError | None] = {}
    waiting = list(wanted)
    not_begun = 0
    cancelled: list[TopicPartition] = []
    moving: set[TopicPartition] = set()
    pause_s = _FIRST_PAUSE_S
    deadline = cluster.deadline()
    while waiting or moving:
        free = at_once - len(moving)
        begun, waiting = waiting[:free], waiting[free:]
        outcomes |= alter_reassignments(cluster, {at: wanted[at] for at in begun})
        moving |= {at for at in begun if outcomes[at] is None}
        left = moving & list_reassignments(cluster).keys() if moving else set()
        if left != moving or begun:
            pause_s, deadline = _FIRST_PAUSE_S, cluster.deadline()
        elif cluster.remaining_ms(deadline) <= 1:
            _check_progress(cluster, left)
            deadline = cluster.deadline()
        cancelled += _not_there(cluster, {at: wanted[at] for at in moving - left}, sleep)
        if cancelled:
            not_begun += len(waiting)
            waiting = []
        moving = left
        ended(len(wanted) - not_begun - len(waiting) - len(moving))
        if moving:
            sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    if cancelled:
        raise Cancelled(sorted(cancelled), sum(each is None for each in outcomes.values()) - len(cancelled), not_begun)
    return {at: outcomes[at] for at in wanted}


def _not_there(
    cluster: Cluster, wanted: Mapping[TopicPartition, Sequence[int]], sleep: Callable[[float], None]
) -> list[TopicPartition]:
    """Return the partitions whose move has ended, and which have other replicas than they were to get.

    A broker learns of a change a moment after the controller, so the look is repeated for some seconds.
    """
    pause_s = _FIRST_PAUSE_S
    left = list(wanted)
    for _ in range(_LOOKS_AT_THE_END if left else 0):
        described = describe_partitions(cluster, {at.topic for at in left})
        # A partition of a topic that was deleted meanwhile has nothing to keep.
        left = [at for at in left if at in described and set(described[at].replicas) != set(wanted[at])]
        if not left:
            break
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return left


def _check_progress(cluster: Cluster, moving: Iterable[TopicPartition]) -> None:
    """Raise Stalled if partitions wait for brokers that do not serve."""
    moves = list_reassignments(cluster)
    described = describe_partitions(cluster, {at.topic for at in moving})
    waits: dict[TopicPartition, list[int]] = {}
    for at in sorted(moving):
        if at in moves and at in described:
            found = described[at]
            # Without a leader there is no replica to copy from.
            needed = moves[at].adding if found.leader >= 0 else found.replicas
            if missing := [each for each in needed if each in found.offline]:
                waits[at] = missing
    if waits:
        raise Stalled(waits)
