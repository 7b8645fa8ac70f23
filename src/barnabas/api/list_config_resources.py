"""ListConfigResources (API key 74, versions 0-1): the resources that have settings.

- Version 0 lists client metrics subscriptions. Version 1 lists topics, brokers, broker loggers, groups and client metrics, or only
  the types that the request names.
- Groups and client metrics are listed if they have a configuration, topics and brokers if they exist.
- A type that cannot be listed is UNSUPPORTED_VERSION, as in Kafka.

Version 0 was ListClientMetricsResources (KIP-1000), 1 adds other types (KIP-1142).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse
from barnabas.turns import ELEMENT, RECORD, pace

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_KINDS = (_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP)


async def handle(context: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    kinds: dict[int, None] = {}
    for kind in [_CLIENT_METRICS] if context.version == 0 else request.resource_types or _KINDS:
        await pace(RECORD)
        kinds[kind] = None
    if any(kind not in _KINDS for kind in kinds):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.services.image()
    resources = []
    for kind in kinds:
        for name in _names(image, kind):
            await pace(ELEMENT)
            resources.append(ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind))
    return ListConfigResourcesResponse(config_resources=resources)


def _names(image: MetadataImage, kind: int) -> list[str]:
    if kind == _TOPIC:
        return list(image.topics.by_name)
    if kind in (_BROKER, _BROKER_LOGGER):
        return [str(broker_id) for broker_id in image.cluster.brokers]
    return image.configs.names_of(kind)
