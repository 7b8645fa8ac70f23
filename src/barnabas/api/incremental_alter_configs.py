"""IncrementalAlterConfigs (API key 44, versions 0-1): change single settings.

- Sets, deletes, appends to and subtracts from settings of topics, brokers, groups and client metrics (KIP-339).
- Each resource succeeds or fails as a whole.
- The broker reads the key and trust stores that it shall use (`serving/store_checks`) and forwards the request to the active controller,
  which responds after its records are committed.

Version 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.api.serving.store_checks import forward_accepted, rejected_stores
from barnabas.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from barnabas.api.serving.context import AnyContext

_SET, _DELETE = 0, 1


async def handle(context: AnyContext, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Check what only this broker can, then forward."""
    rejected = await rejected_stores(context, request.resources, _values_after)
    return await forward_accepted(context, request, rejected, IncrementalAlterConfigsResponse)


def _values_after(
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource, present: Mapping[str, str]
) -> dict[str, str]:
    """Return the values after the changes; no setting of a store is a list, so the controller rejects APPEND and SUBTRACT."""
    after = dict(present)
    for config in resource.configs:
        if config.config_operation == _DELETE:
            after.pop(config.name, None)
        elif config.config_operation == _SET and config.value is not None:
            after[config.name] = config.value
    return after
