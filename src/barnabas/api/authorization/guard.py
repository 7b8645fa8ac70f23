"""The guard of the active controller: it asks about each request of a client before the controller sees it.

A broker on the controller's node passes its clients' requests by a call, other brokers send them in an Envelope, and administrators dial
the controller. All three come through `LocalController.handle`, which calls the guard; only what this node asks in its own name does not.

Source: Kafka's `ControllerApis`.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.api.authorization.asker import Asker, Decisions

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.protocol.message import Message
    from barnabas.security.authorizer import StandardAuthorizer
    from barnabas.security.principal import Principal

__all__ = ["ControllerGuard"]


class ControllerGuard:
    """Asks the authorizer about requests to one controller.

    Args:
        image: returns the current metadata.
    """

    def __init__(self, authorizer: StandardAuthorizer, image: Callable[[], MetadataImage]) -> None:
        self._authorizer = authorizer
        self._image = image
        # A node without an authorizer does not import the checks.
        self._checks = importlib.import_module("barnabas.api.authorization.checks")

    def __repr__(self) -> str:
        return f"<ControllerGuard {self._authorizer!r}>"

    async def answer(
        self,
        api_key: int,
        version: int,
        request: Message,
        principal: Principal,
        host: str,
        then: Callable[[Message], Awaitable[Message]],
    ) -> Message | None:
        """Return the response to a client's request.

        Args:
            host: the client's address.
            then: has the controller answer what is allowed.

        Raises:
            KafkaError: the whole request is refused, or what the controller raises.
        """
        asker = Asker(
            self._authorizer, principal, host, Decisions(), api_key=api_key, version=version, image=self._image
        )
        check = self._checks.DECIDED_CHECKS.get(api_key, self._checks.refused)
        response: Message | None = await check(asker, request, then)
        return response
