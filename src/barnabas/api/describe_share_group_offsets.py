"""DescribeShareGroupOffsets (API key 90): where share groups are. Control plane.

Versions served: 0-1.

- Topics null: all partitions that have state; an empty list: none.
- Start offset and lag are -1 where nothing is known: no such group, topic or partition, or nobody has read yet. That is no error.
- The lag is the high watermark less the start offset less the finished records beyond it.

Version 1 adds the lag (KIP-1226).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.share_requests import is_share_enabled
from barnabas.coordinator.future_steps import gathered
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse

_Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup


def handle(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> asyncio.Future[DescribeShareGroupOffsetsResponse]:
    """Describe the offsets of each group."""
    loop = context.services.loop
    enabled = is_share_enabled(context)

    def one(
        asked: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
    ) -> asyncio.Future[_Group]:
        if enabled and (asked.topics is None or asked.topics):
            return context.services.share.groups.describe_offsets(asked)
        done: asyncio.Future[_Group] = loop.create_future()
        code = ErrorCode.NONE if enabled else ErrorCode.UNSUPPORTED_VERSION
        done.set_result(_Group(group_id=asked.group_id, error_code=code))
        return done

    return gathered(
        loop,
        [one(asked) for asked in request.groups],
        lambda groups: DescribeShareGroupOffsetsResponse(groups=groups),
    )
