"""The elections of unclean recovery: after a heartbeat that says what a replica has, and after the longest wait for one that says nothing.

`unclean_recovery` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.batches import Batches, in_batches
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.partition_leaders import Elections, Hosted
from barnabas.metadata.partition_registration import NO_LEADER
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.replica_logs import Key


def elections_of(view: ControllerView, keys: set[Key]) -> Batches | None:
    """Return the elections after a heartbeat that says something new of these partitions; None if none has waited for it."""
    hosted = list(_hosted(view, keys))
    return in_batches(_elected(view, hosted)) if hosted else None


def elections_of_the_waiting(view: ControllerView) -> Batches | None:
    """Return the elections of the partitions that have waited long enough; None if no partition waits any more."""
    logs = view.sessions.logs
    waiting = list(_hosted(view, set(logs.waiting)))
    logs.end_waits(but={(at.topic.topic_id, at.partition_id) for at in waiting})
    return in_batches(_elected(view, waiting)) if waiting else None


def _hosted(view: ControllerView, keys: set[Key]) -> Iterator[Hosted]:
    """Yield those of the partitions that have neither a leader nor a replica that may lead."""
    topics = view.image.topics
    for topic_id, index in sorted(keys):
        topic = topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or partition.leader != NO_LEADER or partition.isr or partition.elr:
            continue
        yield Hosted(topic, index, partition)


def _elected(view: ControllerView, partitions: list[Hosted]) -> Iterator[MetadataRecord | None]:
    elections = Elections(view)
    for at in partitions:
        yield elections.builder(at).build(at.topic.topic_id, at.partition_id)
