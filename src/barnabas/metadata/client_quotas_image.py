"""Client quotas by entity. Control plane, pure.

An entity is a set of pairs of type (`user`, `client-id`, `ip`) and name, None naming the default of that type.

Sources: Kafka's `ClientQuotasImage`, ClientQuotaRecord; KIP-546.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.protocol import messages

NOTHING: Mapping[Any, Any] = MappingProxyType({})
# Sorted by type, so that one entity is one key.
QuotaEntity = tuple[tuple[str, str | None], ...]


def quota_entity(pairs: list[tuple[str, str | None]]) -> QuotaEntity:
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def _entity_order(entity: QuotaEntity) -> tuple[tuple[str, bool, str], ...]:
    return tuple((kind, name is not None, name or "") for kind, name in entity)


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
        entities = dict(self.image.entities)
        for entity, changes in self.changed.items():
            merged = {**entities.get(entity, {}), **changes}
            kept = {key: value for key, value in merged.items() if value is not None}
            if kept:
                entities[entity] = kept
            else:
                entities.pop(entity, None)
        return ClientQuotasImage(entities)
