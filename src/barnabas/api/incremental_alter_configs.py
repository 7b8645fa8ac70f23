"""IncrementalAlterConfigs (API key 44, versions 0-1): change single settings.

- Sets, deletes, appends to and subtracts from settings of topics, brokers, groups and client metrics (KIP-339).
- Each resource succeeds or fails as a whole.
- The broker checks its own stores and directories that the request names (`serving/own_settings`), and forwards the request to the
  active controller, which responds after its records are committed.

Version 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.api.serving.own_settings import forward_accepted, rejected_settings
from barnabas.metadata.list_changes import changed_list
from barnabas.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from barnabas.api.serving.context import AnyContext

_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3


async def handle(context: AnyContext, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Check what only this broker can, then forward."""
    rejected = await rejected_settings(context, request.resources, _values_after)
    return await forward_accepted(context, request, rejected, IncrementalAlterConfigsResponse)


def _values_after(
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource, present: Mapping[str, str]
) -> dict[str, str]:
    """Return the values after the changes. The controller rejects APPEND and SUBTRACT of a setting that is not a list."""
    after = dict(present)
    for config in resource.configs:
        if config.config_operation == _DELETE:
            after.pop(config.name, None)
        elif config.config_operation == _SET and config.value is not None:
            after[config.name] = config.value
        elif config.config_operation in (_APPEND, _SUBTRACT):
            is_append = config.config_operation == _APPEND
            after[config.name] = changed_list(after.get(config.name), config.value, is_append=is_append)
    return after
