"""DescribeShareGroupOffsets (API key 90, versions 0-1): start offsets and lags of share groups.

- Topics null: all partitions that have a state; an empty list: none.
- Start offset and lag are -1 if they are unknown: no such group, topic or partition, or no member has read yet. That is not an error.
- The lag is the high watermark less the start offset less the finished records beyond it.

Version 1 adds the lag (KIP-1226).
"""

from __future__ import annotations

from functools import partial

from barnabas.api.authorization import share_offsets
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import is_share_enabled
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from barnabas.steps import gather

_Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
_Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup


async def handle(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Describe the offsets of each group."""
    described = (_describe(context, asked) for asked in request.groups)
    return DescribeShareGroupOffsetsResponse(groups=await gather(described, context.services.loop))


async def _describe(context: RequestContext, asked: _Asked) -> _Group:
    if not is_share_enabled(context):
        return _Group(group_id=asked.group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    asker = context.asker
    if asker is not None:
        return await share_offsets.describe(asker, asked, partial(_found, context))
    return await _found(context, asked)


async def _found(context: RequestContext, asked: _Asked) -> _Group:
    if asked.topics is not None and not asked.topics:
        return _Group(group_id=asked.group_id)
    return await context.services.share.groups.describe_offsets(asked)
