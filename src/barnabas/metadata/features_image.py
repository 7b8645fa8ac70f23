"""Finalized feature levels.

`metadata.version` is kept apart from the others, as in Kafka: it decides the format of records, the others what clients
may use. A feature at level 0 is the same as one that was never finalized.

Sources: Kafka's `FeaturesImage`, FeatureLevelRecord; KIP-584, KIP-778.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.metadata.nothing import NOTHING
from barnabas.protocol import messages

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_FEATURE = "eligible.leader.replicas.version"


class FeaturesImage(NamedTuple):
    """Attributes: `metadata_version` is None before the bootstrap; `finalized` holds the other features, none at 0.

    `kraft_version` is in the quorum's control records; the metadata loader copies it here for readers of features.
    """

    metadata_version: int | None = None
    finalized: Mapping[str, int] = NOTHING
    kraft_version: int = 0

    def level(self, name: str) -> int:
        if name == METADATA_VERSION:
            return self.metadata_version or 0
        if name == KRAFT_VERSION:
            return self.kraft_version
        return self.finalized.get(name, 0)

    def all_finalized(self) -> dict[str, int]:
        """Return every finalized feature, metadata.version among them, in name order, as ApiVersions lists them."""
        levels = dict(self.finalized)
        if self.metadata_version is not None:
            levels[METADATA_VERSION] = self.metadata_version
        if self.kraft_version > 0:
            levels[KRAFT_VERSION] = self.kraft_version
        return dict(sorted(levels.items()))

    def records(self) -> Iterator[messages.FeatureLevelRecord]:
        # metadata.version first: a reader needs it to read the rest.
        if self.metadata_version is not None:
            yield messages.FeatureLevelRecord(name=METADATA_VERSION, feature_level=self.metadata_version)
        for name, level in sorted(self.finalized.items()):
            yield messages.FeatureLevelRecord(name=name, feature_level=level)


class FeaturesDelta:
    def __init__(self, image: FeaturesImage) -> None:
        self.image = image
        self.changed: dict[str, int] = {}

    def replay(self, record: messages.FeatureLevelRecord) -> None:
        self.changed[record.name] = record.feature_level

    def apply(self) -> FeaturesImage:
        levels = {**self.image.finalized, **self.changed}
        metadata_version = levels.pop(METADATA_VERSION, self.image.metadata_version)
        kept = {name: level for name, level in sorted(levels.items()) if level > 0}
        return FeaturesImage(metadata_version, kept, self.image.kraft_version)
