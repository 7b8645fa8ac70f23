"""AlterClientQuotas: limits of users, client ids and addresses.

- Each entity succeeds or fails by itself, and wholly.
- An entity is a user, a client id, both, or an address; a null name is the default of its kind. An address cannot
  be combined with another kind.
- Bytes per second and connections per second are whole numbers, percentages and mutation rates need not be; all are above
  zero. A change that changes nothing writes no record.
- The second change of one entity is rejected; the first one stays.

One difference: Kafka also takes a host name as an address and resolves it. This controller must not block, so it rejects
host names.

Sources: Kafka's `ClientQuotaControlManager`, `QuotaConfig`; KIP-546, KIP-612.
"""

from __future__ import annotations

import ipaddress

from barnabas.metadata.client_quotas_image import QuotaEntity, quota_entity
from barnabas.metadata.controller_view import (
    MAX_RECORDS_PER_REQUEST,
    NO_ERROR,
    ApiError,
    ControllerResult,
    ControllerView,
)
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError

USER, CLIENT_ID, IP = "user", "client-id", "ip"
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
# The largest whole number that a limit may be; None where fractions are allowed.
_USER_AND_CLIENT_KEYS: dict[str, int | None] = {
    "producer_byte_rate": LONG_MAX,
    "consumer_byte_rate": LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_KEYS: dict[str, int | None] = {"connection_creation_rate": INT_MAX}
_SMALLEST_FRACTION = 1e-6


def alter_client_quotas(
    view: ControllerView, request: messages.AlterClientQuotasRequest
) -> ControllerResult[messages.AlterClientQuotasResponse]:
    """Answer one AlterClientQuotas request."""
    records: list[MetadataRecord] = []
    outcomes: dict[QuotaEntity, ApiError] = {}
    for entry in request.entries:
        # If a type is named twice, the last name counts.
        entity = quota_entity(list({part.entity_type: part.entity_name for part in entry.entity}.items()))
        changes: dict[str, float | None] = {}
        repeats = False
        for op in entry.ops:
            repeats = repeats or op.key in changes
            changes[op.key] = None if op.remove else op.value
        if repeats or entity in outcomes:
            message = f"Ignoring duplicate entity {_text(entity)}"
            outcomes[entity] = ApiError(ErrorCode.INVALID_REQUEST, message)
            continue
        outcomes[entity], added = _alter_entity(view, entity, changes)
        records += added
        if len(records) > MAX_RECORDS_PER_REQUEST:
            message = "Unable to perform excessively large batch operation."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
    response = messages.AlterClientQuotasResponse(
        entries=[
            messages.AlterClientQuotasResponse.EntryData(
                error_code=error.code,
                error_message=error.message,
                entity=[
                    messages.AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity
                ],
            )
            for entity, error in outcomes.items()
        ]
    )
    return ControllerResult(response, [] if request.validate_only else records)


def _text(entity: QuotaEntity) -> str:
    parts = (f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{', '.join(parts)}}})"


def _alter_entity(
    view: ControllerView, entity: QuotaEntity, changes: dict[str, float | None]
) -> tuple[ApiError, list[MetadataRecord]]:
    keys, message = _keys(entity)
    if message is not None:
        return ApiError(ErrorCode.INVALID_REQUEST, message), []
    current = view.image.client_quotas.entities.get(entity, {})
    records: list[MetadataRecord] = []
    for key, value in changes.items():
        if value is None:
            if key in current:
                records.append(messages.ClientQuotaRecord(entity=_parts(entity), key=key, remove=True))
        elif (message := _fault(keys, key, value)) is not None:
            return ApiError(ErrorCode.INVALID_REQUEST, message), []
        elif current.get(key) != value:
            records.append(messages.ClientQuotaRecord(entity=_parts(entity), key=key, value=value))
    return NO_ERROR, records


def _parts(entity: QuotaEntity) -> list[messages.ClientQuotaRecord.EntityData]:
    return [messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]


def _keys(entity: QuotaEntity) -> tuple[dict[str, int | None], str | None]:
    """Return the limits that an entity can have, or the error message for the entity."""
    kinds = dict(entity)
    if not kinds:
        return {}, "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return {}, f"Unhandled client quota entity type: {kind}"
        if name == "":
            return {}, f"Empty {kind} not supported"
    if IP not in kinds:
        return _USER_AND_CLIENT_KEYS, None
    if len(kinds) > 1:
        return {}, "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    address = kinds[IP]
    if address is not None and not _is_address(address):
        return {}, f"{address} is not a valid IP or resolvable host."
    return _IP_KEYS, None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _fault(keys: dict[str, int | None], key: str, value: float) -> str | None:
    if key not in keys:
        return f"Invalid configuration key {key}"
    if value <= 0.0:
        return f"Quota {key} must be greater than 0"
    largest = keys[key]
    if largest is None:
        return None
    if value > largest:
        article, kind = ("an", "INT") if largest == INT_MAX else ("a", "LONG")
        return f"Proposed value for {key} is too large for {article} {kind}."
    if abs(value % 1.0) > _SMALLEST_FRACTION:
        return f"{key} cannot be a fractional value."
    return None
