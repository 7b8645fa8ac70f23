"""A node with delegation tokens, whose client is who the test says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.protocol.messages import CreateDelegationTokenRequest
from barnabas.security.principal import ANONYMOUS, Principal
from tests.api.served_node import Serving

SECRET: dict[str, Any] = {"delegation.token.secret.key": "a secret of the cluster"}
AUTHORIZER: dict[str, Any] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
STRANGERS = (
    ("PLAINTEXT", ALICE),
    ("PLAINTEXT", ANONYMOUS),
    ("SSL", ANONYMOUS),
    ("SASL_SSL", Principal("User", "alice", by_token=True)),
    ("SSL", Principal("User", "alice", by_token=True)),
)
"""Connections that may not ask for tokens: the protocol of the listener, and who logged in."""


class TokenNode(Serving):
    """The client has logged in as alice over SASL_SSL."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.log_in(ALICE)

    def log_in(self, principal: Principal, protocol: str = "SASL_SSL") -> None:
        self.connection.principal = principal
        self.connection.security_protocol = protocol

    def create(self, *renewers: Principal, owner: Principal | None = None, version: int = 3, **fields: Any) -> Any:
        kind = CreateDelegationTokenRequest
        of = [kind.CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in renewers]
        request = kind(renewers=of, **fields)
        if owner is not None:
            request.owner_principal_type, request.owner_principal_name = owner.type, owner.name
        return self.ask(request, version)
