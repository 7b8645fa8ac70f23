"""Client quotas: of users, client ids and addresses.

Sources: DescribeClientQuotas (48), AlterClientQuotas (49); KIP-546, KIP-612.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.outcome import outcome_of
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

Entity = tuple[tuple[str, str | None], ...]
"""Pairs of type (`user`, `client-id`, `ip`) and name, sorted; the name None stands for every one without a quota of its own."""


class Quota(NamedTuple):
    """The quotas of one entity; values by name, such as `producer_byte_rate`."""

    entity: Entity
    values: dict[str, float]


def list_quotas(cluster: Cluster) -> list[Quota]:
    """Return every quota, sorted by entity."""

    def ask() -> list[Quota]:
        response = cluster.any_connection().request(messages.DescribeClientQuotasRequest(components=[], strict=False))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return [
            Quota(
                tuple(sorted((part.entity_type, part.entity_name) for part in each.entity)),
                {value.key: value.value for value in sorted(each.values, key=lambda value: value.key)},
            )
            for each in response.entries or ()
        ]

    return sorted(cluster.retry(ask), key=lambda quota: [(kind, name or "") for kind, name in quota.entity])


def alter_quotas(
    cluster: Cluster, entity: Entity, values: Mapping[str, float | None], *, validate_only: bool = False
) -> KafkaError | None:
    """Set quotas of one entity, and remove those whose value is None; return the error, if there is one."""
    request_class = messages.AlterClientQuotasRequest
    parts = [request_class.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    ops = [request_class.OpData(key=name, value=value or 0.0, remove=value is None) for name, value in values.items()]
    request = request_class(entries=[request_class.EntryData(entity=parts, ops=ops)], validate_only=validate_only)
    (answer,) = cluster.retry(lambda: cluster.any_connection().request(request)).entries
    return outcome_of(answer.error_code, answer.error_message)
