"""The delta from one image to another, for a node that receives a snapshot.

A snapshot does not name things that were deleted before it was written. So its records are replayed into an image of its own, and this
delta has every difference between that image and the present one. It deletes everything that the snapshot lacks, and changes
everything that is different in it.

Source: the `finishSnapshot` of Kafka's `MetadataDelta` and its parts, which name everything that the snapshot has as changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features_image import METADATA_VERSION, FeaturesImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.topics_image import TopicDelta, TopicImage, TopicsImage

Key = TypeVar("Key")
Value = TypeVar("Value")


def difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """Make the delta that makes `new` of `old`, except for the provenance and kraft.version, which are in no record."""
    delta = MetadataDelta(old)
    if levels := _levels(old.features, new.features):
        delta.or_features().changed = levels
    if brokers := _changed(old.cluster.brokers, new.cluster.brokers):
        delta.or_cluster().changed_brokers = brokers
    if controllers := _changed(old.cluster.controllers, new.cluster.controllers):
        delta.or_cluster().changed_controllers = controllers
    _topics(delta, old.topics, new.topics)
    if configs := _changed_within(old.configs.by_resource, new.configs.by_resource):
        delta.or_configs().changed = configs
    if quotas := _changed_within(old.client_quotas.entities, new.client_quotas.entities):
        delta.or_client_quotas().changed = quotas
    if old.producer_ids != new.producer_ids:
        delta.producer_ids = new.producer_ids
    if acls := _changed(old.acls.entries, new.acls.entries):
        delta.or_acls().changed = acls
    if credentials := _changed(old.scram.credentials, new.scram.credentials):
        delta.or_scram().changed = credentials
    if tokens := _changed(old.delegation_tokens.tokens, new.delegation_tokens.tokens):
        delta.or_delegation_tokens().changed = tokens
    return delta


def _changed(old: Mapping[Key, Value], new: Mapping[Key, Value]) -> dict[Key, Value | None]:
    """Return the new and the different entries, and None for each missing one."""
    changed: dict[Key, Value | None] = {key: value for key, value in new.items() if old.get(key) != value}
    changed.update((key, None) for key in old if key not in new)
    return changed


def _changed_within(
    old: Mapping[Key, Mapping[str, Value]], new: Mapping[Key, Mapping[str, Value]]
) -> dict[Key, dict[str, Value | None]]:
    return {
        key: _changed(old.get(key, NOTHING), new.get(key, NOTHING))
        for key in dict.fromkeys([*new, *old])
        if old.get(key) != new.get(key)
    }


def _levels(old: FeaturesImage, new: FeaturesImage) -> dict[str, int]:
    levels = {name: level or 0 for name, level in _changed(old.finalized, new.finalized).items()}
    if new.metadata_version is not None and new.metadata_version != old.metadata_version:
        levels[METADATA_VERSION] = new.metadata_version
    return levels


def _topics(delta: MetadataDelta, old: TopicsImage, new: TopicsImage) -> None:
    for topic_id, topic in new.by_id.items():
        before = old.by_id.get(topic_id)
        if before is not topic and before != topic:
            delta.or_topics().changed[topic_id] = _topic(before, topic)
    for topic_id, topic in old.by_id.items():
        if topic_id not in new.by_id:
            delta.or_topics().deleted[topic_id] = topic


def _topic(old: TopicImage | None, new: TopicImage) -> TopicDelta:
    if old is None:
        created = TopicDelta(TopicImage(new.name, new.topic_id, NOTHING), is_new=True)
        created.partition_changes = dict(new.partitions)
        return created
    gone = old.partitions.keys() - new.partitions.keys()
    assert not gone, f"the snapshot lacks partitions {sorted(gone)} of {new.name}, and no record removes a partition"
    changed = TopicDelta(old, is_new=False)
    changed.partition_changes = {
        index: now for index, now in new.partitions.items() if old.partitions.get(index) != now
    }
    return changed
