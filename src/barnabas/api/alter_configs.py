"""AlterConfigs (API key 33, versions 0-2): replace a resource's whole configuration.

- A setting that the request does not name returns to its default. Deprecated in favour of IncrementalAlterConfigs, still sent by
  librdkafka.
- The broker checks its own stores and directories that the request names (`serving/own_settings`), and forwards the request to the
  active controller, which responds after its records are committed.

Version 1 adds the throttle time, 2 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.api.serving.own_settings import forward_accepted, rejected_settings
from barnabas.protocol.messages import AlterConfigsRequest, AlterConfigsResponse

if TYPE_CHECKING:
    from barnabas.api.serving.context import AnyContext


async def handle(context: AnyContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Check what only this broker can, then forward."""
    rejected = await rejected_settings(context, request.resources, _values_after)
    return await forward_accepted(context, request, rejected, AlterConfigsResponse)


def _values_after(resource: AlterConfigsRequest.AlterConfigsResource, present: Mapping[str, str]) -> dict[str, str]:
    return {config.name: config.value for config in resource.configs if config.value is not None}
