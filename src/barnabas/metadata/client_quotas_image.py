"""Client quotas by entity.

An entity is a set of pairs of type (`user`, `client-id`, `ip`) and name, None naming the default of that type. Entities
and their limits are kept in the order in which Kafka's hash maps would have them, as DescribeClientQuotas shows.

Sources: Kafka's `ClientQuotasImage`, `ClientQuotasDelta`, `ClientQuotaDelta`, ClientQuotaRecord; KIP-546.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.metadata.hash_order import capacity_for, in_hash_order
from barnabas.metadata.nothing import NOTHING
from barnabas.protocol import messages
from barnabas.protocol.partition_for import string_hash

# Sorted by type, so that one entity is one key.
QuotaEntity = tuple[tuple[str, str | None], ...]


def quota_entity(pairs: list[tuple[str, str | None]]) -> QuotaEntity:
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def _entity_order(entity: QuotaEntity) -> tuple[tuple[str, bool, str], ...]:
    return tuple((kind, name is not None, name or "") for kind, name in entity)


def _entity_hash(entity: QuotaEntity) -> int:
    """As `ClientQuotaEntity.hashCode`: of a map, in a list of one."""
    return 31 + sum(string_hash(kind) ^ (0 if name is None else string_hash(name)) for kind, name in entity)


class ClientQuotasImage(NamedTuple):
    """Limits by entity, then by quota name."""

    entities: Mapping[QuotaEntity, Mapping[str, float]] = NOTHING

    def records(self) -> Iterator[messages.ClientQuotaRecord]:
        for entity in sorted(self.entities, key=_entity_order):
            for key, value in sorted(self.entities[entity].items()):
                yield messages.ClientQuotaRecord(
                    entity=[
                        messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity
                    ],
                    key=key,
                    value=value,
                    remove=False,
                )


class ClientQuotasDelta:
    """`changed` maps an entity to its limits, None meaning removed."""

    def __init__(self, image: ClientQuotasImage) -> None:
        self.image = image
        self.changed: dict[QuotaEntity, dict[str, float | None]] = {}

    def replay(self, record: messages.ClientQuotaRecord) -> None:
        entity = quota_entity([(part.entity_type, part.entity_name) for part in record.entity])
        self.changed.setdefault(entity, {})[record.key] = None if record.remove else record.value

    def apply(self) -> ClientQuotasImage:
        old = self.image.entities
        merged = {**old, **{entity: self._limits(entity) for entity in in_hash_order(self.changed, _entity_hash)}}
        kept = {entity: limits for entity, limits in merged.items() if limits}
        order = in_hash_order(kept, _entity_hash, capacity_for(len(old)))
        return ClientQuotasImage({entity: kept[entity] for entity in order})

    def _limits(self, entity: QuotaEntity) -> dict[str, float]:
        old, changes = self.image.entities.get(entity, NOTHING), self.changed[entity]
        merged = {**old, **{key: changes[key] for key in in_hash_order(changes, string_hash)}}
        kept = {key: value for key, value in merged.items() if value is not None}
        order = in_hash_order(kept, string_hash, capacity_for(len(old)))
        return {key: kept[key] for key in order}
