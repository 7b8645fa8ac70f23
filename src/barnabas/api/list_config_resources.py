"""ListConfigResources (key 74), versions 0-1. Control plane.

- Version 0 knew one kind, client metrics subscriptions; version 1 lists topics, brokers, broker loggers, groups
  and client metrics, all of them when no kind is named.
- Groups and client metrics are those that have a configuration; topics and brokers are those that exist.
- A kind that cannot be listed is UNSUPPORTED_VERSION, as in Kafka.

v0 was ListClientMetricsResources (KIP-1000); v1 other kinds (KIP-1142).
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

__all__ = ["handle"]

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_KINDS = (_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP)


def handle(context: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    kinds = [_CLIENT_METRICS] if context.version == 0 else request.resource_types or list(_KINDS)
    if any(kind not in _KINDS for kind in kinds):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.services.image()
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(kinds)
            for name in _names(image, kind)
        ]
    )


def _names(image: MetadataImage, kind: int) -> list[str]:
    if kind == _TOPIC:
        return list(image.topics.by_name)
    if kind in (_BROKER, _BROKER_LOGGER):
        return [str(broker_id) for broker_id in image.cluster.brokers]
    return image.configs.names_of(kind)
