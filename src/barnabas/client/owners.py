"""Who owns a topic: a label for people, stored in the cluster.

    {"version": 1, "owner": "team-shop", "topic_id": "AAECAwQFBgcICQoLDA0ODw"}

The topic `__barnabas_owners` keeps the labels by the topic's name (`CompactedTopic`), because Apache Kafka rejects settings
that it does not know. The topic's id is kept, so that a topic which was deleted and created again has no owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicMetadata
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.protocol.primitives import uuid_to_str

OWNERS_TOPIC = "__barnabas_owners"
_VERSION = 1


def list_owners(cluster: Cluster, topics: Iterable[TopicMetadata]) -> dict[str, str]:
    """Return the owner of each of these topics that has one.

    Raises:
        KafkaError: the owners cannot be read.
        ValueError: a newer release wrote one of them.
    """
    if OWNERS_TOPIC not in cluster.retry(lambda: cluster.metadata([OWNERS_TOPIC])).topics:
        return {}
    stored = CompactedTopic(cluster, OWNERS_TOPIC).items()
    found = {}
    for each in topics:
        fields = json.loads(stored.get(each.name, b"null"))
        if fields is None:
            continue
        if fields["version"] != _VERSION:
            raise ValueError(
                f"{OWNERS_TOPIC} has an owner of version {fields['version']}: this release is too old to read it"
            )
        if fields["topic_id"] == uuid_to_str(each.topic_id):
            found[each.name] = fields["owner"]
    return found


def set_owner(cluster: Cluster, topic: TopicMetadata, owner: str, *, now_ms: int) -> None:
    """Store a topic's owner; an empty text removes it.

    Raises:
        KafkaError: it may not be stored.
    """
    fields = {"version": _VERSION, "owner": owner, "topic_id": uuid_to_str(topic.topic_id)}
    value = json.dumps(fields, separators=(",", ":")).encode() if owner else None
    CompactedTopic(cluster, OWNERS_TOPIC).put(topic.name, value, now_ms)
