"""AlterShareGroupOffsets (API key 91): begin a share group's partitions at other offsets. Control plane.

Versions served: 0.

- The group must have no members: NON_EMPTY_GROUP. One that is not there is made.
- What members had taken and not acknowledged is forgotten, with all delivery counts.
- An unknown topic or partition: UNKNOWN_TOPIC_OR_PARTITION, partition by partition.

Version 0 is KIP-932.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse


def handle(
    context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> asyncio.Future[AlterShareGroupOffsetsResponse]:
    """Set offsets."""
    check_share_groups_enabled(context)
    return context.services.share.groups.alter_offsets(request.group_id, request.topics)
