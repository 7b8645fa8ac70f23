"""DeleteShareGroupOffsets (API key 92, version 0): delete a share group's offsets in topics.

- A missing group gets GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP.
- A topic that does not exist, or in which the group has no offsets, gets UNKNOWN_TOPIC_OR_PARTITION.

Version 0 is KIP-932.
"""

from __future__ import annotations

from functools import partial

from barnabas.api.authorization import share_offsets
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse


async def handle(context: RequestContext, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    """Delete offsets."""
    check_share_groups_enabled(context)
    asker = context.asker
    if asker is not None:
        return await share_offsets.delete(asker, request, partial(_delete, context))
    return await _delete(context, request)


async def _delete(context: RequestContext, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    topics = [topic.topic_name for topic in request.topics]
    return await context.services.share.groups.delete_offsets(request.group_id, topics)
