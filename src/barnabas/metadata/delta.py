"""The changes of an image by later records.

`replay` takes the records of the metadata log one by one, in order; `apply` yields the image after them. Each part of
the image has its own delta, made on the first record that touches it, so `delta.topics is None` means that no topic
changed.

- Replaying a list of records and applying once gives the same image as applying after each record.
- A record that no part knows is an error: a replica that skipped it would have another state than its peers from then on. The
  caller stops the process.
- NoOpRecord and the ZooKeeper migration's record change nothing. The loader removes the records
  that begin and end a metadata transaction (KIP-868).

Sources: Kafka's `org.apache.kafka.image.MetadataDelta`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from barnabas.metadata.client_quotas_image import ClientQuotasDelta
from barnabas.metadata.cluster_image import ClusterDelta
from barnabas.metadata.configs_image import ConfigurationsDelta
from barnabas.metadata.features_image import FeaturesDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance, ProducerIdsImage
from barnabas.metadata.record_codec import MetadataRecord, UnknownRecord
from barnabas.metadata.security_images import AclsDelta, DelegationTokensDelta, ScramDelta
from barnabas.metadata.topics_image import TopicsDelta
from barnabas.protocol import messages


class MetadataDelta:
    """Attributes: one delta per part of the image, None while untouched."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.features: FeaturesDelta | None = None
        self.cluster: ClusterDelta | None = None
        self.topics: TopicsDelta | None = None
        self.configs: ConfigurationsDelta | None = None
        self.client_quotas: ClientQuotasDelta | None = None
        self.producer_ids: ProducerIdsImage | None = None
        self.acls: AclsDelta | None = None
        self.scram: ScramDelta | None = None
        self.delegation_tokens: DelegationTokensDelta | None = None

    def replay(self, record: MetadataRecord) -> None:
        """Replay one record.

        Raises:
            UnknownRecord: the record's type is not one an image can hold.
        """
        replayer = _replayers().get(record.NAME)
        if replayer is None:
            raise UnknownRecord(f"the metadata log holds a {record.NAME}, which this version cannot replay")
        replayer(self, record)

    def or_features(self) -> FeaturesDelta:
        if self.features is None:
            self.features = FeaturesDelta(self.image.features)
        return self.features

    def or_cluster(self) -> ClusterDelta:
        if self.cluster is None:
            self.cluster = ClusterDelta(self.image.cluster)
        return self.cluster

    def or_topics(self) -> TopicsDelta:
        if self.topics is None:
            self.topics = TopicsDelta(self.image.topics)
        return self.topics

    def or_configs(self) -> ConfigurationsDelta:
        if self.configs is None:
            self.configs = ConfigurationsDelta(self.image.configs)
        return self.configs

    def or_client_quotas(self) -> ClientQuotasDelta:
        if self.client_quotas is None:
            self.client_quotas = ClientQuotasDelta(self.image.client_quotas)
        return self.client_quotas

    def or_acls(self) -> AclsDelta:
        if self.acls is None:
            self.acls = AclsDelta(self.image.acls)
        return self.acls

    def or_scram(self) -> ScramDelta:
        if self.scram is None:
            self.scram = ScramDelta(self.image.scram)
        return self.scram

    def or_delegation_tokens(self) -> DelegationTokensDelta:
        if self.delegation_tokens is None:
            self.delegation_tokens = DelegationTokensDelta(self.image.delegation_tokens)
        return self.delegation_tokens

    def replay_remove_topic(self, record: messages.RemoveTopicRecord) -> None:
        topics = self.or_topics()
        changed = topics.changed.get(record.topic_id)
        name = changed.name if changed else self.image.topics.name_of(record.topic_id)
        topics.replay_remove_topic(record)
        assert name is not None
        if self.configs is not None or self.image.configs.for_resource(2, name):
            self.or_configs().replay_remove_topic(record, name)

    def replay_producer_ids(self, record: messages.ProducerIdsRecord) -> None:
        self.producer_ids = ProducerIdsImage(record.next_producer_id)

    def apply(self, provenance: MetadataProvenance | None = None) -> MetadataImage:
        """Return the image after all replayed records; without a provenance it keeps the old one."""
        old = self.image
        return MetadataImage(
            provenance or old.provenance,
            self.features.apply() if self.features else old.features,
            self.cluster.apply() if self.cluster else old.cluster,
            self.topics.apply() if self.topics else old.topics,
            self.configs.apply() if self.configs else old.configs,
            self.client_quotas.apply() if self.client_quotas else old.client_quotas,
            self.producer_ids if self.producer_ids is not None else old.producer_ids,
            self.acls.apply() if self.acls else old.acls,
            self.scram.apply() if self.scram else old.scram,
            self.delegation_tokens.apply() if self.delegation_tokens else old.delegation_tokens,
        )

    @property
    def weight(self) -> int:
        """How many partitions and topics have changed, as the cost to make the image."""
        topics = self.topics
        if topics is None:
            return 0
        deleted = sum(len(topic.partitions) for topic in topics.deleted.values())
        return deleted + sum(1 + len(topic.partition_changes) for topic in topics.changed.values())

    def __repr__(self) -> str:
        changed = [part for part in MetadataImage._fields if getattr(self, part, None) is not None]
        return f"<MetadataDelta since={self.image.provenance.offset} changed={changed}>"


@cache
def _replayers() -> dict[str, Callable[[MetadataDelta, Any], None]]:
    """Return the replaying function of each record that an image knows, by the record's name."""
    return {
        "FeatureLevelRecord": lambda d, r: d.or_features().replay(r),
        "RegisterBrokerRecord": lambda d, r: d.or_cluster().replay_register_broker(r),
        "UnregisterBrokerRecord": lambda d, r: d.or_cluster().replay_unregister_broker(r),
        "FenceBrokerRecord": lambda d, r: d.or_cluster().replay_fence(r),
        "UnfenceBrokerRecord": lambda d, r: d.or_cluster().replay_unfence(r),
        "BrokerRegistrationChangeRecord": lambda d, r: d.or_cluster().replay_broker_change(r),
        "RegisterControllerRecord": lambda d, r: d.or_cluster().replay_register_controller(r),
        "UnregisterControllerRecord": lambda d, r: d.or_cluster().replay_unregister_controller(r),
        "TopicRecord": lambda d, r: d.or_topics().replay_topic(r),
        "PartitionRecord": lambda d, r: d.or_topics().replay_partition(r),
        "PartitionChangeRecord": lambda d, r: d.or_topics().replay_partition_change(r),
        "RemoveTopicRecord": MetadataDelta.replay_remove_topic,
        "ClearElrRecord": lambda d, r: d.or_topics().replay_clear_elr(r),
        "ConfigRecord": lambda d, r: d.or_configs().replay(r),
        "ClientQuotaRecord": lambda d, r: d.or_client_quotas().replay(r),
        "ProducerIdsRecord": MetadataDelta.replay_producer_ids,
        "AccessControlEntryRecord": lambda d, r: d.or_acls().replay(r),
        "RemoveAccessControlEntryRecord": lambda d, r: d.or_acls().replay_remove(r),
        "UserScramCredentialRecord": lambda d, r: d.or_scram().replay(r),
        "RemoveUserScramCredentialRecord": lambda d, r: d.or_scram().replay_remove(r),
        "DelegationTokenRecord": lambda d, r: d.or_delegation_tokens().replay(r),
        "RemoveDelegationTokenRecord": lambda d, r: d.or_delegation_tokens().replay_remove(r),
        "NoOpRecord": lambda d, r: None,
        "ZkMigrationStateRecord": lambda d, r: None,
    }
