"""ApiVersions (API key 18, versions 0-5): the APIs, versions and features that this broker or controller serves.

- The APIs are those of the listener's kind: the table in `barnabas.api` or `barnabas.api.controller_apis`, Produce from version 0 (see
  there). `dispatch` answers an unknown version with a version 0 body.
- Client telemetry is listed only where `/metrics` is served and while there is a subscription: else every client would ask in vain, and
  librdkafka prints a line about the id that it gets. (Kafka lists it where a plugin receives it.)
- Finalized features are those of the metadata image, except `transaction.version`, `group.version`, `share.version` and
  `streams.version`: each is left out unless the API it needs is in the table, because clients trust the finalized level, not
  the version range (franz-go decides transactions so).
- A feature whose lowest level is 0 is listed only from version 4: older Java clients reject such a range (KAFKA-17011).
- Client software name and version must match Kafka's pattern, else the response is INVALID_REQUEST.
- From version 5 a wrong cluster id or node id gets REBOOTSTRAP_REQUIRED, so that a client of a replaced cluster asks its bootstrap
  servers again.

Version 3 adds features and a flexible body with a version 0 response header (KIP-511, KIP-584), 4 lowest level 0, 5 cluster id
and node id (KIP-1242).
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from barnabas.api import APIS, RECEIVER, TELEMETRY, max_version
from barnabas.api.serving.context import AnyContext
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import supported_features
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class _Needs(NamedTuple):
    """The API that a feature needs."""

    api_key: int


# feature → what must be served before a level above 0 is finalized.
_PROMISES = {
    "transaction.version": _Needs(28),
    "group.version": _Needs(68),
    "share.version": _Needs(76),
    "streams.version": _Needs(88),
}


async def handle(context: AnyContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    version, services = context.version, context.services
    if version >= 3:
        if not (
            _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.client_software_name = request.client_software_name
        context.connection.client_software_version = request.client_software_version
    if version >= 5 and _is_for_another(context, request):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    config, apis = services.config, services.apis
    keys = apis if _receives_telemetry(context) else tuple(key for key in apis if key not in TELEMETRY)
    served = tuple((key, apis[key].min_version, max_version(key, config, apis)) for key in keys)
    response = ApiVersionsResponse(api_keys=_ranges(served))
    if version >= 3:
        image = services.image()
        response.supported_features = _supported(version)
        response.finalized_features = _finalized(image)
        response.finalized_features_epoch = image.provenance.offset
    return response


def _receives_telemetry(context: AnyContext) -> bool:
    services = context.services
    if not services.config.str_value(RECEIVER):
        return False
    return any(kind == ConfigResourceType.CLIENT_METRICS for kind, _ in services.image().configs.by_resource)


def _is_for_another(context: AnyContext, request: ApiVersionsRequest) -> bool:
    if request.cluster_id is not None and request.cluster_id != context.services.cluster_id:
        return True
    return request.node_id >= 0 and request.node_id != context.services.node_id


@cache
def _ranges(served: tuple[tuple[int, int, int], ...]) -> list[ApiVersionsResponse.ApiVersion]:
    return [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, lowest, highest in served
    ]


def _is_promised(name: str) -> bool:
    needs = _PROMISES.get(name)
    return needs is None or needs.api_key in APIS


@cache
def _supported(version: int) -> list[ApiVersionsResponse.SupportedFeatureKey]:
    return [
        ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=levels.min, max_version=levels.max)
        for name, levels in supported_features().items()
        if _is_promised(name) and (version >= 4 or levels.min > 0)
    ]


def _finalized(image: MetadataImage) -> list[ApiVersionsResponse.FinalizedFeatureKey]:
    return [
        ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in image.features.all_finalized().items()
        if level > 0 and _is_promised(name)
    ]
