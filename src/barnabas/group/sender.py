"""Sender: the client that sent a request to a group."""

from __future__ import annotations

from typing import NamedTuple


class Sender(NamedTuple):
    """The client that sent a request.

    Attributes:
        client_host: its address as Java prints one without a name, such as "/10.0.0.7".
        version: of the request.
    """

    client_id: str
    client_host: str
    version: int
