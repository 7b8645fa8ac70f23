"""The partitions that change when something happens to a broker, and the settings that decide their elections.

    what happens to a broker             its partitions
    fenced, or shuts down cleanly        it leaves each ISR; where it led, another replica leads
    unfenced                             those without a leader may get one
    restarts after a clean shutdown      as if it was fenced
    restarts after a crash               it leaves each ISR and each ELR, because its disk may have lost records
    unregistered                         as if it was fenced

`PartitionChangeBuilder` has the rules of elections. A topic with unclean.leader.election.enable always elects UNCLEAN here.

Sources: Kafka's `ReplicationControlManager.generateLeaderAndIsrUpdates` and its callers, `LeaderAcceptor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from barnabas.metadata.batches import Batches, in_batches
from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED, default_directory
from barnabas.metadata.features_image import ELR_FEATURE
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_change_builder import Election, ElectionRules, PartitionChangeBuilder
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.topics_image import TopicImage
from barnabas.metadata.unclean_recovery import AGGRESSIVE, Recovery

NOBODY = -1


class Hosted(NamedTuple):
    """A partition of a topic."""

    topic: TopicImage
    partition_id: int
    partition: PartitionRegistration


class Elections:
    """Builds the changes of partitions as one view of the controller has topics, brokers and settings.

    Args:
        gone: a broker that is leaving; it cannot lead.
        back: a broker that is being unfenced; it can lead although the view still has it as fenced.
        crashed: a broker that restarts after a crash; it cannot lead and is not eligible.
        assigned: a broker that reports its replica in a directory that it offers.
    """

    def __init__(
        self,
        view: ControllerView,
        *,
        gone: int = NOBODY,
        back: int = NOBODY,
        crashed: int = NOBODY,
        assigned: int = NOBODY,
    ) -> None:
        self._view = view
        self._assigned = assigned
        self._gone, self._back, self._crashed = gone, back, crashed
        self._elr_enabled = view.image.features.level(ELR_FEATURE) > 0
        level = view.image.features.metadata_version
        self._metadata_version = LATEST_PRODUCTION if level is None else level
        self._settings: dict[str, tuple[int, bool]] = {}

    def __repr__(self) -> str:
        return f"<Elections gone={self._gone} back={self._back} crashed={self._crashed}>"

    def builder(self, at: Hosted, election: Election | None = None) -> PartitionChangeBuilder:
        """Return a builder for a partition; without an election, the topic's settings choose it."""
        min_isr, is_unclean = self._settings_of(at.topic)
        if election is None:
            election = Election.UNCLEAN if is_unclean else Election.ONLINE
        is_acceptable = self._acceptor(at.partition)
        recovery = Recovery(self._view, (at.topic.topic_id, at.partition_id), at.partition, is_acceptable)
        rules = ElectionRules(
            is_acceptable,
            min_isr,
            self._elr_enabled,
            election,
            self._metadata_version,
            self._default_directory,
            recovery.at_once if election is Election.UNCLEAN else recovery.automatic,
        )
        return PartitionChangeBuilder(at.partition, rules)

    def _default_directory(self, broker_id: int) -> bytes:
        return default_directory(self._view.image.cluster.brokers.get(broker_id))

    def changes(self, partitions: Iterable[Hosted]) -> Iterator[MetadataRecord | None]:
        """Yield the record of each partition after what happened to the broker; None if it stays as it is."""
        leaving = frozenset((self._gone, self._crashed)) - {NOBODY}
        for at in partitions:
            builder = self.builder(at)
            if leaving:
                builder.isr = tuple(replica for replica in at.partition.isr if replica not in leaving)
            builder.lost = frozenset((self._crashed,))
            yield builder.build(at.topic.topic_id, at.partition_id)

    def is_unclean(self, topic: TopicImage) -> bool:
        """Return whether the topic may elect a replica that may have lost records."""
        return self._settings_of(topic)[1]

    def _settings_of(self, topic: TopicImage) -> tuple[int, bool]:
        found = self._settings.get(topic.name)
        if found is None:
            min_isr = self._value(topic.name, "min.insync.replicas")
            is_unclean = self._value(topic.name, "unclean.leader.election.enable")
            is_aggressive = self._view.settings.unclean_recovery_strategy == AGGRESSIVE
            first = next(iter(topic.partitions.values()))
            assert isinstance(min_isr, int), min_isr
            found = self._settings[topic.name] = (
                min(min_isr, len(first.replicas)),
                is_unclean is True or is_aggressive,
            )
        return found

    def _value(self, topic: str, name: str) -> object:
        view = self._view
        key = view.configs.schema.of(ConfigResourceType.TOPIC)[name]
        text = view.image.configs.for_resource(ConfigResourceType.TOPIC, topic).get(name)
        return view.configs.topic_default(view.image.configs, key)[0] if text is None else key.parse(text)

    def _acceptor(self, partition: PartitionRegistration) -> Callable[[int], bool]:
        brokers = self._view.image.cluster.brokers
        gone, back, crashed = self._gone, self._back, self._crashed

        def is_acceptable(replica: int) -> bool:
            broker = brokers.get(replica)
            if broker is None or replica in (gone, crashed) or broker.in_controlled_shutdown:
                return False
            if broker.fenced and replica != back:
                return False
            return replica == self._assigned or has_directory_online(broker, partition, replica)

        return is_acceptable


def is_active(broker: BrokerRegistration) -> bool:
    """Return whether a broker may lead partitions."""
    return not (broker.fenced or broker.in_controlled_shutdown)


def has_directory_online(broker: BrokerRegistration, partition: PartitionRegistration, replica: int) -> bool:
    """Return whether the directory of a replica is one that its broker offers."""
    position = partition.replicas.index(replica) if replica in partition.replicas else len(partition.directories)
    if position >= len(partition.directories):
        return True
    directory = partition.directories[position]
    if directory in (MIGRATING, UNASSIGNED):
        return True
    # Before metadata.version 3.7-IV2 brokers did not name their directories.
    return directory != LOST and (not broker.directories or directory in broker.directories)


def indexed(view: ControllerView, key: int) -> Iterator[Hosted]:
    """Yield the partitions that the image's index has for a broker, or for one of its other keys."""
    topics = view.image.topics
    for topic_id, partition_ids in topics.partition_index.get(key, NOTHING).items():
        topic = topics.by_id[topic_id]
        for partition_id in partition_ids:
            yield Hosted(topic, partition_id, topic.partitions[partition_id])


def leads_any(view: ControllerView, broker_id: int) -> bool:
    """Return whether a broker leads a partition."""
    return any(at.partition.leader == broker_id for at in indexed(view, broker_id))


def is_in_any_isr(view: ControllerView, broker_id: int) -> bool:
    return any(broker_id in at.partition.isr for at in indexed(view, broker_id))


def on_broker_gone(view: ControllerView, broker_id: int, *first: MetadataRecord) -> Batches:
    """Return the changes when a broker is fenced or shuts down cleanly; `first` comes before them."""
    in_isr = (at for at in indexed(view, broker_id) if broker_id in at.partition.isr)
    return in_batches(Elections(view, gone=broker_id).changes(in_isr), *first)


def on_broker_crashed(view: ControllerView, broker_id: int) -> Batches:
    """Return the changes when a broker restarts after a crash."""
    if view.image.features.level(ELR_FEATURE) == 0:
        return on_broker_gone(view, broker_id)
    return in_batches(Elections(view, crashed=broker_id).changes(indexed(view, broker_id)))


def on_broker_back(view: ControllerView, broker_id: int, *first: MetadataRecord) -> Batches:
    """Return the changes when a broker is unfenced: partitions without a leader elect one; `first` comes before them."""
    leaderless = indexed(view, WITHOUT_LEADER)
    return in_batches(Elections(view, back=broker_id).changes(leaderless), *first)
