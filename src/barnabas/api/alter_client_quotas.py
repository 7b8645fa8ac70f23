"""AlterClientQuotas (key 49), versions 0-1. Control plane.

- Sets and removes limits of users, client ids and addresses; see `metadata.client_quota_control` for what is allowed.
- `validate_only` checks and changes nothing.

v1 flexible. KIP-546, KIP-612.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def handle(context: RequestContext, request: AlterClientQuotasRequest) -> asyncio.Future[AlterClientQuotasResponse]:
    return forward(context, request)
