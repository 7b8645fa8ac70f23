"""The state of the cluster at one offset of the metadata log.

Everything a broker knows about the cluster is in the `MetadataImage`: frozen, whole, and true for the offset in its
provenance. Readers take the image they find and may keep it as long as they like; the next one shares what did not
change. The parts are named tuples rather than frozen dataclasses: making those classes is a tenth of the work, and each
start pays for it. `MetadataDelta` makes the next image, `records()` writes this one down as a snapshot, and replaying those
records over the empty image gives an equal image again.

Sources: Kafka's `org.apache.kafka.image.MetadataImage`, `ImageWriter`; KIP-631.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.metadata.client_quotas_image import ClientQuotasImage
from barnabas.metadata.cluster_image import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.metadata.features_image import FeaturesImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.security_images import AclsImage, DelegationTokensImage, ScramImage
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from barnabas.protocol import messages

__all__ = [
    "BrokerRegistration",
    "ControllerRegistration",
    "Endpoint",
    "MetadataImage",
    "MetadataProvenance",
    "PartitionRegistration",
    "ProducerIdsImage",
    "TopicImage",
    "TopicsImage",
]


class MetadataProvenance(NamedTuple):
    """The last record an image holds: its offset, its leader epoch, and when its batch was appended."""

    offset: int = -1
    epoch: int = -1
    last_contained_log_time_ms: int = -1


class ProducerIdsImage(NamedTuple):
    """The first producer id that no broker has been given, or -1 if none was ever given."""

    next_producer_id: int = -1

    def records(self) -> Iterator[messages.ProducerIdsRecord]:
        if self.next_producer_id >= 0:
            yield messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)


class MetadataImage(NamedTuple):
    provenance: MetadataProvenance = MetadataProvenance()
    features: FeaturesImage = FeaturesImage()
    cluster: ClusterImage = ClusterImage()
    topics: TopicsImage = TopicsImage()
    configs: ConfigurationsImage = ConfigurationsImage()
    client_quotas: ClientQuotasImage = ClientQuotasImage()
    producer_ids: ProducerIdsImage = ProducerIdsImage()
    acls: AclsImage = AclsImage()
    scram: ScramImage = ScramImage()
    delegation_tokens: DelegationTokensImage = DelegationTokensImage()

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the records of a snapshot, in the order in which Kafka's image writes them."""
        yield from self.features.records()
        yield from self.cluster.records()
        yield from self.topics.records()
        yield from self.configs.records()
        yield from self.client_quotas.records()
        yield from self.producer_ids.records()
        yield from self.acls.records()
        yield from self.scram.records()
        yield from self.delegation_tokens.records()

    def __repr__(self) -> str:
        return (
            f"<MetadataImage offset={self.provenance.offset} epoch={self.provenance.epoch} "
            f"brokers={sorted(self.cluster.brokers)} topics={len(self.topics.by_name)}>"
        )
