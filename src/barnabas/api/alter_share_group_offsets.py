"""AlterShareGroupOffsets (API key 91, version 0): start a share group's partitions at other offsets.

- A group with members gets NON_EMPTY_GROUP. A missing group is created.
- Acquired records and all delivery counts are forgotten.
- An unknown topic or partition gets UNKNOWN_TOPIC_OR_PARTITION, partition by partition.

Version 0 is KIP-932.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse


async def handle(context: RequestContext, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    """Set offsets."""
    check_share_groups_enabled(context)
    return await context.services.share.groups.alter_offsets(request.group_id, request.topics)
