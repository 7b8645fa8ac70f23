"""DeleteShareGroupOffsets (API key 92): forget where a share group is in topics. Control plane.

Versions served: 0.

- The group must be there and have no members: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
- A topic that is unknown, or in which the group has no offsets: UNKNOWN_TOPIC_OR_PARTITION, topic by topic.

Version 0 is KIP-932.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse


def handle(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> asyncio.Future[DeleteShareGroupOffsetsResponse]:
    """Delete offsets."""
    check_share_groups_enabled(context)
    topics = [topic.topic_name for topic in request.topics]
    return context.services.share.groups.delete_offsets(request.group_id, topics)
