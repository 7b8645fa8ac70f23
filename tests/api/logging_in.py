"""A served node whose connection belongs to a listener with PLAIN."""

from __future__ import annotations

from pathlib import Path

from barnabas.security.sasl.plain import PlainServer
from barnabas.security.server_login import ServerLogin
from tests.api.served_node import Serving


def serving_logins(folder: Path, *, max_reauth_ms: int = 0) -> Serving:
    """Return a node whose one user is alice, with the password `secret`."""
    node = Serving(folder)
    node.connection.login = ServerLogin(
        {"PLAIN": lambda during: PlainServer({"alice": "secret"}.get)},
        now_ms=lambda: node.now_ms,
        max_reauth_ms={"PLAIN": max_reauth_ms},
    )
    return node
