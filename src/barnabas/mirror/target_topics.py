"""The topics of the target: created as those of the source, grown with them, and checked.

A new topic gets the source's number of partitions, as many replicas as the source's has or the target has brokers, and the settings that
were set for the source's topic itself. Settings that the target does not know, and those that name brokers or could make the topic
unwritable, are left out, and a line says which.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from barnabas.client.admin import (
    Admin,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    TopicMetadata,
    result,
)
from barnabas.mirror.stopped import MirrorStopped

_LEFT_OUT = {
    "leader.replication.throttled.replicas": "it names brokers",
    "follower.replication.throttled.replicas": "it names brokers",
    "remote.storage.enable": "the target may have no remote storage",
    "message.timestamp.before.max.ms": "it would reject old records",
}
_MIN_ISR = "min.insync.replicas"


def is_copied(topic: TopicMetadata) -> bool:
    """Return whether a topic of the source may be copied: internal ones, `__…`, are not."""
    return not topic.is_internal and not topic.name.startswith("__")


class TargetTopics:
    """Creates and checks topics of the target.

    Args:
        known_settings: the names of topics' settings that the target has.
        say: prints a line.
    """

    def __init__(self, source: Admin, target: Admin, known_settings: Set[str], say: Callable[[str], None]) -> None:
        self._source = source
        self._target = target
        self._known = known_settings
        self._say = say

    def __repr__(self) -> str:
        return f"<TargetTopics settings={len(self._known)}>"

    def prepare(self, topic: TopicMetadata, *, is_mirrored: bool) -> TopicMetadata:
        """Return the target's topic for one of the source; create it, or add partitions to one that was mirrored before.

        Raises:
            MirrorStopped: it has fewer partitions, and may be somebody else's.
            KafkaError: it cannot be created.
        """
        found = self._target.describe_topics([topic.name])[topic.name]
        count = len(topic.partitions)
        if not isinstance(found, TopicMetadata):
            if is_mirrored:
                raise MirrorStopped(
                    f"topic {topic.name} was deleted at the target after records of it were mirrored",
                    "begin another mirror with --name, or leave the topic out with --topics",
                )
            result(self._target.create_topics([self._new(topic)])[topic.name])
        elif len(found.partitions) < count:
            if not is_mirrored:
                raise MirrorStopped(
                    f"topic {topic.name} has fewer partitions at the target ({len(found.partitions)}) than at the source"
                    f" ({count})",
                    f"`barnabas topic alter {topic.name} -p {count}` at the target adds them, or leave it out with --topics",
                )
            result(self._target.create_partitions({topic.name: count})[topic.name])
        return self._target.cluster.retry(lambda: result(self._target.describe_topics([topic.name])[topic.name]))

    def _new(self, topic: TopicMetadata) -> NewTopic:
        replicas = min(len(topic.partitions[0].replicas), len(self._target.cluster.nodes()))
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        settings = {}
        for entry in result(self._source.describe_configs([resource])[resource]):
            if entry.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG or entry.value is None:
                continue
            reason = _LEFT_OUT.get(entry.name)
            if entry.name not in self._known:
                reason = "the target does not know it"
            elif entry.name == _MIN_ISR and int(entry.value) > replicas:
                reason = f"the target's topic has {replicas} replica{'' if replicas == 1 else 's'}"
            if reason is None:
                settings[entry.name] = entry.value
            else:
                self._say(f"topic {topic.name}: {entry.name}={entry.value} is left out: {reason}")
        return NewTopic(topic.name, len(topic.partitions), replicas, settings)


def settings_known(target: Admin, topic: str) -> set[str]:
    """Return the names of topics' settings that a cluster has.

    Args:
        topic: one that exists there.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return {entry.name for entry in result(target.describe_configs([resource])[resource])}
