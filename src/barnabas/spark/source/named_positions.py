"""Positions that the cluster keeps under a name: what a consumer group committed, and cuts.

A partition of which the group or the cut knows nothing begins at its beginning: the group has read none of it, or it is newer than
the cut. That goes for an end too, so a batch up to `group:NAME` has exactly what the group has read.

A name that does not exist is an error, never an empty position: the query would read everything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition as ClusterPartition
from barnabas.client.cuts import list_cuts
from barnabas.client.group_offsets import list_group_offsets
from barnabas.client.groups import list_groups
from barnabas.protocol.primitives import uuid_to_str
from barnabas.spark.source.offsets import Position, TopicPartition
from barnabas.words.nearest import did_you_mean


def group_position(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition], *, require_stable: bool
) -> Position:
    """Return the offsets that a group committed in some partitions.

    Args:
        require_stable: wait for offsets of open transactions; UNSTABLE_OFFSET_COMMIT until they are decided.

    Raises:
        ValueError: it committed none; the message has the nearest name of a group.
        KafkaError: its coordinator does not answer.
    """
    wanted = [ClusterPartition(*each) for each in partitions]
    found = list_group_offsets(cluster, group_id, wanted, require_stable=require_stable)
    if wanted and not found:
        names = [each.group_id for each in list_groups(cluster)]
        meant = "" if group_id in names else did_you_mean(group_id, names)
        raise ValueError(f"group {group_id} has no offsets in the topics of this query{meant}")
    return {(at.topic, at.partition): committed.offset for at, committed in found.items()}


def cut_position(
    cluster: Cluster, name: str, partitions: Iterable[TopicPartition], topic_ids: Mapping[str, bytes]
) -> Position:
    """Return the offsets of a cut in some partitions.

    Args:
        topic_ids: of the topics now.

    Raises:
        ValueError: the cut does not exist, has not all of the topics, or a topic was deleted and created again since.
        KafkaError: the cuts cannot be read.
    """
    cuts = list_cuts(cluster)
    if name not in cuts:
        raise ValueError(f"cut {name} does not exist{did_you_mean(name, cuts)}; `barnabas cut list` shows which exist")
    cut = cuts[name]
    wanted = sorted(partitions)
    for topic in dict.fromkeys(topic for topic, _ in wanted):
        if topic not in cut.topic_ids:
            raise ValueError(
                f"cut {name} has no offsets of topic {topic}; `barnabas cut show {name}` shows what it has"
            )
        if topic in topic_ids and uuid_to_str(topic_ids[topic]) != cut.topic_ids[topic]:
            raise ValueError(
                f"topic {topic} was deleted and created again after cut {name}: its offsets mean other records"
            )
    known = {(at.topic, at.partition): offset for at, offset in cut.offsets.items()}
    return {each: known[each] for each in wanted if each in known}
