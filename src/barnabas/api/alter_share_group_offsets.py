"""AlterShareGroupOffsets (API key 91, version 0): start a share group's partitions at other offsets.

- A group with members gets NON_EMPTY_GROUP. A missing group is created.
- Acquired records and all delivery counts are forgotten.
- An unknown topic or partition gets UNKNOWN_TOPIC_OR_PARTITION, partition by partition.

Version 0 is KIP-932.
"""

from __future__ import annotations

from functools import partial

from barnabas.api.authorization import share_offsets
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse


async def handle(context: RequestContext, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    """Set offsets."""
    check_share_groups_enabled(context)
    asker = context.asker
    if asker is not None:
        return await share_offsets.alter(asker, request, partial(_alter, context))
    return await _alter(context, request)


async def _alter(context: RequestContext, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    return await context.services.share.groups.alter_offsets(request.group_id, request.topics)
