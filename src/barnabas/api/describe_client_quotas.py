"""DescribeClientQuotas (API key 48, versions 0-1): the limits of the entities that a filter matches.

- A filter has at most one component per entity type: an exact name, the default, or any name. `strict` leaves out entities that
  have other types as well. A filter without components matches everything.
- An invalid filter is INVALID_REQUEST, an unknown entity type UNSUPPORTED_VERSION; `entries` is then null.

Version 1 is flexible (KIP-546).

Source: Kafka's `ClientQuotasImage.describe`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.api.serving.context import RequestContext
from barnabas.metadata.client_quotas_image import QuotaEntity
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from barnabas.turns import ELEMENT, pace

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
_KINDS = ("user", "client-id", "ip")


async def handle(context: RequestContext, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    try:
        exact, specified = _filter(request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    entries = []
    for entity, limits in context.services.image().client_quotas.entities.items():
        await pace(ELEMENT)
        if _matches(entity, exact, specified, strict=request.strict):
            entries.append(_entry(entity, limits))
    return DescribeClientQuotasResponse(entries=entries)


def _entry(entity: QuotaEntity, limits: Mapping[str, float]) -> DescribeClientQuotasResponse.EntryData:
    return DescribeClientQuotasResponse.EntryData(
        entity=[DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in limits.items()],
    )


def _filter(request: DescribeClientQuotasRequest) -> tuple[dict[str, str | None], set[str]]:
    """Return names by type (None for the default), and the types that match any name."""
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for component in request.components or ():
        kind, match = component.entity_type, component.match
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in exact or kind in specified:
            message = f"Entity type {kind} cannot appear more than once in the filter."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        if kind not in _KINDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type == EXACT:
            if match is None:
                message = "Request specified MATCH_TYPE_EXACT, but set match string to null."
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
            exact[kind] = match
        elif component.match_type in (DEFAULT, SPECIFIED):
            name = "DEFAULT" if component.match_type == DEFAULT else "SPECIFIED"
            if match is not None:
                message = f"Request specified MATCH_TYPE_{name}, but also specified a match string."
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
            if component.match_type == DEFAULT:
                exact[kind] = None
            else:
                specified.add(kind)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
    kinds = exact.keys() | specified
    if "ip" in kinds and len(kinds) > 1:
        message = (
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return exact, specified


def _matches(entity: QuotaEntity, exact: dict[str, str | None], specified: set[str], *, strict: bool) -> bool:
    kinds = dict(entity)
    if strict and len(kinds) != len(exact) + len(specified):
        return False
    return specified <= kinds.keys() and all(kind in kinds and kinds[kind] == name for kind, name in exact.items())
