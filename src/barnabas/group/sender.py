"""Sender: the client that sent a request to a group."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.security.principal import ANONYMOUS, Principal


class Sender(NamedTuple):
    """The client that sent a request.

    Attributes:
        client_host: its address as Java prints one without a name, such as "/10.0.0.7".
        version: of the request.
        principal: in whose name the group's expressions are resolved (KIP-848).
    """

    client_id: str
    client_host: str
    version: int
    principal: Principal = ANONYMOUS
