"""AlterUserScramCredentials (key 51), version 0. Control plane.

- Sets and deletes what users' passwords are checked against; see `metadata.scram_control`.
- Credentials are kept and described; no listener asks for them yet.

v0 flexible. KIP-554.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse


def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> asyncio.Future[AlterUserScramCredentialsResponse]:
    return forward(context, request)
