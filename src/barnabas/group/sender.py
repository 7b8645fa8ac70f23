"""Sender: the client that sent a request to a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.security.principal import ANONYMOUS, Principal


class Sender(NamedTuple):
    """The client that sent a request.

    Attributes:
        client_host: its address as Java prints one without a name, such as "/10.0.0.7".
        version: of the request.
        sees: returns whether it may describe a topic, by which the group's expressions are resolved (KIP-848); any thread may call it.
            None if everybody may.
    """

    client_id: str
    client_host: str
    version: int
    principal: Principal = ANONYMOUS
    sees: Callable[[str], bool] | None = None
